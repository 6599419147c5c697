import { Broadcast } from '../base/broadcast.ts'

/** The latest characters of a log that are kept. */
const keptCharacters = 1024 * 1024

/** The logs of pods, in memory. */
export class PodLogs {
  readonly #texts = new Map<string, string>()
  readonly #written = new Broadcast<[key: string, text: string]>()

  write(namespace: string, pod: string, text: string): void {
    const key = `${namespace}/${pod}`
    this.#texts.set(key, ((this.#texts.get(key) ?? '') + text).slice(-keptCharacters))
    this.#written.announce(key, text)
  }

  read(namespace: string, pod: string): string {
    return this.#texts.get(`${namespace}/${pod}`) ?? ''
  }

  /** Calls `onText` with each text that the pod writes from now on, until disposed. */
  follow(namespace: string, pod: string, onText: (text: string) => void): Disposable {
    return this.#written.listen((key, text) => {
      if (key === `${namespace}/${pod}`) onText(text)
    })
  }
}
