package bert

func available() []*kernel { return []*kernel{portable()} }
