package flat

func available() []kernel { return []kernel{portable} }
