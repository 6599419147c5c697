import { inspect } from 'node:util'

const redacted = '[redacted]'

/** A value that logs, error messages and inspections print as `[redacted]`; `reveal` returns it. */
export class Secret<T> {
  readonly #value: T
  constructor(value: T) {
    this.#value = value
  }
  reveal(): T {
    return this.#value
  }
  toString(): string {
    return redacted
  }
  toJSON(): string {
    return redacted
  }
  [inspect.custom](): string {
    return redacted
  }
}
