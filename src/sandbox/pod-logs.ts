/** How much of a log is kept. */
const kept = 1024 * 1024

/** What pods have written. */
export class PodLogs {
  readonly #texts = new Map<string, string>()
  readonly #followers = new Map<string, Set<(text: string) => void>>()

  write(namespace: string, pod: string, text: string): void {
    const key = `${namespace}/${pod}`
    this.#texts.set(key, ((this.#texts.get(key) ?? '') + text).slice(-kept))
    for (const tell of this.#followers.get(key) ?? []) tell(text)
  }

  read(namespace: string, pod: string): string {
    return this.#texts.get(`${namespace}/${pod}`) ?? ''
  }

  /** Calls `tell` for what is written from now on, until disposed. */
  follow(namespace: string, pod: string, tell: (text: string) => void): Disposable {
    const key = `${namespace}/${pod}`
    const followers = this.#followers.get(key) ?? new Set()
    this.#followers.set(key, followers.add(tell))
    return {
      [Symbol.dispose]: () => {
        followers.delete(tell)
        if (followers.size === 0) this.#followers.delete(key)
      },
    }
  }
}
