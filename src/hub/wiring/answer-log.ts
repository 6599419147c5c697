import type { Logger } from 'pino'
import { RepeatLimiter } from '../../base/repeat-limiter.ts'
import type { AnswerLine } from '../pipeline/trace.ts'

/** A kubelet that is refused asks again and again. */
const togetherMs = 60_000

/**
 * Tells of each answer at debug. Of those that say that the hub or an API server could not answer
 * (500 and above) it tells at info, too: of each code and source at once, and then no more than
 * once a minute, with the latest and how many `times`.
 */
export class AnswerLog implements Disposable {
  readonly #log: Logger
  readonly #failed: RepeatLimiter<AnswerLine>

  /** `together`: for how many milliseconds failed requests are told together. */
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

  /** What was not told yet is. */
  [Symbol.dispose](): void {
    this.#failed[Symbol.dispose]()
  }
}

/** To a microsecond. */
const rounded = (line: AnswerLine): AnswerLine => ({
  ...line,
  ms: Math.round(line.ms * 1000) / 1000,
})
