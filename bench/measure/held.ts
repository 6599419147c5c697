/**
 * What the JavaScript of a process holds, told by its debugger (Node's `--inspect`): after a
 * collection of all garbage, so that a kilobyte that is left behind shows among millions.
 */
export class Held implements Disposable {
  readonly #socket: WebSocket
  readonly #answers = new Map<number, (result: HeapUsage) => void>()
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
      const { id, result } = JSON.parse(String(data)) as { id?: number; result: HeapUsage }
      if (id !== undefined) this.#answers.get(id)?.(result)
    })
  }

  /** The heap and what buffers lie outside of it, without garbage. */
  async bytes(): Promise<number> {
    await this.#ask('HeapProfiler.collectGarbage')
    const { usedSize, backingStorageSize = 0 } = await this.#ask('Runtime.getHeapUsage')
    return usedSize + backingStorageSize
  }

  #ask(method: string): Promise<HeapUsage> {
    const { promise, resolve } = Promise.withResolvers<HeapUsage>()
    const id = ++this.#last
    this.#answers.set(id, resolve)
    this.#socket.send(JSON.stringify({ id, method }))
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
