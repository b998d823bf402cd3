export interface Store<T> extends Base<{ a: string }> {
  get(id: string): Promise<T>
  readonly size: number
}

export type Id = string | { id: string };
enum Colour { Red, Green }

/** Keeps things. */
@Injectable()
export abstract class Memory<T> implements Store<T> {
  constructor(private readonly limit: number) { super(); }
  public async get(id: string): Promise<T> {
    if (id) { return this.x; }
  }
  abstract clear(): void;
}

namespace Util {
  export function pad(s: string): string { return s; }
}
