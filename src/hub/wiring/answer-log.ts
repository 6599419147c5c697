import type { Logger } from 'pino'
import { RepeatLimiter } from '../../base/repeat-limiter.ts'
import type { AnswerLine } from '../pipeline/trace.ts'

/** A refused kubelet retries all the time. */
const togetherMs = 60_000

/** Clients choose their names: beyond so many in an interval, the rest are logged together. */
const mostKinds = 16

/** How the hub itself refuses: unknown caller, not allowed, a foreign Host or Origin, overload. */
const refusals = new Set([401, 403, 421, 429])

/** Whether the hub itself refused the request that was answered so. */
const isRefusal = ({ code, source }: Pick<AnswerLine, 'code' | 'source'>): boolean =>
  source === 'hub' && refusals.has(code)

/**
 * Logs each answer at debug. Besides it logs the requests that the hub refused, as warnings, and at
 * info the answers of 500 and above: the first of each code, source and component at once, and then
 * at most once a minute, with the latest one and the number of `times`.
 */
export class AnswerLog implements Disposable {
  readonly #log: Logger
  readonly #limited: RepeatLimiter<AnswerLine>

  /** `together`: the milliseconds for which such requests are logged together. */
  constructor(log: Logger, together = togetherMs) {
    this.#log = log
    this.#limited = new RepeatLimiter(together, (line, times) => {
      const fields = { ...rounded(line), ...(times > 1 && { times }) }
      if (line.code >= 500) log.info(fields, 'a request failed')
      else log.warn(fields, 'a request was refused')
    })
  }

  add(line: AnswerLine): void {
    const { code, source, component } = line
    if (this.#log.isLevelEnabled('debug')) this.#log.debug(rounded(line), 'answered')
    if (code >= 500 || isRefusal(line)) {
      const key = `${code} ${source} ${component}`
      const isFull = !this.#limited.has(key) && this.#limited.size >= mostKinds
      this.#limited.add(isFull ? `${code} ${source}` : key, line)
    }
  }

  /** Logs what is still pending. */
  [Symbol.dispose](): void {
    this.#limited[Symbol.dispose]()
  }
}

/** Rounds to microseconds. */
const rounded = (line: AnswerLine): AnswerLine => ({
  ...line,
  ms: Math.round(line.ms * 1000) / 1000,
})
