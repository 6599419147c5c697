/**
 * What the JavaScript of a process holds, told by its debugger (Node's `--inspect`): after a
 * collection of all garbage, so that a kilobyte that is left behind shows among millions.
 */
export class Held implements Disposable {
  readonly #socket: WebSocket
  readonly #answers = new Map<number, (result: unknown) => void>()
  #last = 0

  /** `port`: the debugger's, on loopback. */
  static async of(port: number): Promise<Held> {
    const answer = await fetch(`http://127.0.0.1:${port}/json/list`)
    const [first] = (await answer.json()) as { webSocketDebuggerUrl: string }[]
    if (first === undefined) throw new Error(`nothing to be debugged at port ${port}`)
    const socket = new WebSocket(first.webSocketDebuggerUrl)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket.addEventListener('open', () => resolve())
    socket.addEventListener('error', () => reject(new Error(`no debugger at port ${port}`)))
    await promise
    return new Held(socket)
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result: unknown }
      if (id !== undefined) this.#answers.get(id)?.(result)
    })
  }

  /** The heap and what buffers lie outside of it, without garbage. */
  async bytes(): Promise<number> {
    await this.#ask('HeapProfiler.collectGarbage')
    const usage = (await this.#ask('Runtime.getHeapUsage')) as HeapUsage
    return usage.usedSize + (usage.backingStorageSize ?? 0)
  }

  /** What was allocated on the heap since the process began, garbage included. */
  async allocated(): Promise<number> {
    const { result } = (await this.#ask('Runtime.evaluate', {
      expression: `process.getBuiltinModule('v8').getHeapStatistics().total_allocated_bytes`,
      returnByValue: true,
    })) as { readonly result: { readonly value: number } }
    return result.value
  }

  #ask(method: string, params: object = {}): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers()
    const id = ++this.#last
    this.#answers.set(id, resolve)
    this.#socket.send(JSON.stringify({ id, method, params }))
    return promise
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }
}

/** Of `Runtime.getHeapUsage`, in bytes. */
interface HeapUsage {
  readonly usedSize: number
  readonly backingStorageSize?: number
}
