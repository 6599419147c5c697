import type { Logger } from 'pino'
import { RepeatLimiter } from '../../base/repeat-limiter.ts'
import type { AnswerLine } from '../pipeline/trace.ts'

/** A refused kubelet retries all the time. */
const togetherMs = 60_000

/**
 * Logs each answer at debug. Answers of 500 and above, by which the hub or an API server failed,
 * are also logged at info: the first of each code and source at once, and then at most once a
 * minute, with the latest one and the number of `times`.
 */
export class AnswerLog implements Disposable {
  readonly #log: Logger
  readonly #failed: RepeatLimiter<AnswerLine>

  /** `together`: the milliseconds for which failed requests are logged together. */
  constructor(log: Logger, together = togetherMs) {
    this.#log = log
    this.#failed = new RepeatLimiter(together, (line, times) =>
      log.info({ ...rounded(line), ...(times > 1 && { times }) }, 'a request failed'),
    )
  }

  add(line: AnswerLine): void {
    if (this.#log.isLevelEnabled('debug')) this.#log.debug(rounded(line), 'answered')
    else if (line.code >= 500) this.#failed.add(`${line.code} ${line.source}`, line)
  }

  /** Logs what is still pending. */
  [Symbol.dispose](): void {
    this.#failed[Symbol.dispose]()
  }
}

/** Rounds to microseconds. */
const rounded = (line: AnswerLine): AnswerLine => ({
  ...line,
  ms: Math.round(line.ms * 1000) / 1000,
})
