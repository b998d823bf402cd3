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
export interface Keys {
  match (r: Map<string, number>, o?: string): Promise<boolean>,
  has (name: string): boolean,
  keys (): string[]
}
export function wrap<T>(value: T): T & { signal: string } {
  return value
}
function pair(): { a: number } {
  return { a: 1 }
}
export type Context<K> = [K] extends [never]
  ? {
      key: K
    }
  : {
      page: K
    }
class Query {
  run() {
    const create = (): Context<
      string,
      number
    > => {
      return 1
    }
  }
}
export const serve = <E extends Env = Env, S extends Shape = {}>(
  app: App<E, S>,
  options: Options = { port: 0 }
): Server<E, S> => {
  return app.listen(options)
}
