/** The last lines of a text, within a number of lines and of characters. */
export class RecentLines {
  readonly #lines: string[] = []
  readonly #mostLines: number
  readonly #mostLength: number
  #length = 0

  constructor({ lines, length }: { readonly lines: number; readonly length: number }) {
    this.#mostLines = lines
    this.#mostLength = length
  }

  /** A line that alone is too long is left out. */
  add(line: string): void {
    if (line.length > this.#mostLength) return
    this.#lines.push(line)
    this.#length += line.length
    while (this.#lines.length > this.#mostLines || this.#length > this.#mostLength)
      this.#length -= this.#lines.shift()?.length ?? 0
  }

  /** The oldest first. */
  get lines(): readonly string[] {
    return this.#lines
  }
}
