import { readFileSync } from 'node:fs'
import { writeDurably } from '../../base/durable-file.ts'
import { parseBootstrapToken, type BootstrapToken } from '../../config/bootstrap.ts'

/**
 * The bootstrap tokens that root has handed over while the hub ran, in a file for later starts: the
 * last one, and behind it the last good one before it. Only a request for a certificate shows
 * whether the cluster accepts a token; until then it displaces no good one.
 */
export class HandedOverTokens {
  readonly #file: string
  #stored: Promise<void> = Promise.resolve()

  constructor(file: string) {
    this.#file = file
  }

  /** In the order in which they are to be tried. */
  all(): readonly BootstrapToken[] {
    return this.#lines().flatMap((line) => parseBootstrapToken(line) ?? [])
  }

  /** Resolves when the token is on the disk, and rejects where it cannot be written. */
  add(token: BootstrapToken): Promise<void> {
    const next = textOf(token)
    return this.#change((lines) => [next, ...lines.slice(-1).filter((last) => last !== next)])
  }

  /** To be called when a certificate was obtained with the token: those behind it are forgotten. */
  proven(token: BootstrapToken): Promise<void> {
    const good = textOf(token)
    // A token that was handed over meanwhile stays before it, and may have replaced it.
    return this.#change((lines) => {
      const at = lines.indexOf(good)
      return at === -1 ? [...lines.slice(0, 1), good] : lines.slice(0, at + 1)
    })
  }

  #lines(): readonly string[] {
    try {
      const lines = readFileSync(this.#file, 'utf8').split('\n')
      return lines.map((line) => line.trim()).filter((line) => parseBootstrapToken(line))
    } catch {
      return []
    }
  }

  /** One change at a time. */
  #change(change: (lines: readonly string[]) => readonly string[]): Promise<void> {
    const stored = this.#stored.then(async () => {
      const before = this.#lines()
      const after = change(before)
      if (after.join() !== before.join()) await writeDurably(this.#file, `${after.join('\n')}\n`)
    })
    this.#stored = stored.catch(() => undefined)
    return stored
  }
}

const textOf = ({ id, secret }: BootstrapToken): string => `${id}.${secret.reveal()}`
