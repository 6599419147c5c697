import { isTrue, parseRequestInfo } from '../../src/api/request/request-info.ts'

/** A flag of programs made with client-go, with which they log the answers to their requests. */
export const logsRequests = '--vmodule=round_trippers=6'

/** klog's header of a line; what a distribution writes before it is passed over. */
const at =
  /^(?:\S+ )?I(?<month>\d\d)(?<date>\d\d) (?<h>\d\d):(?<m>\d\d):(?<s>\d\d\.\d+) [^\]]*\] (?<said>.*)/

/** What client-go says of an answer: since Kubernetes 1.32, and before. */
const answers = [
  /^"Response" verb="GET" url="(?<url>[^"]+)" status="(?<status>[^"]*)" .*milliseconds=(?<ms>\d+)/,
  /^GET (?<url>\S+) (?<status>.*) in (?<ms>\d+) milliseconds/,
]

/** A list or watch that a program has begun. */
interface Begun {
  /** When, in milliseconds since some year began. */
  readonly at: number
  /** What it covers: a path and selectors. */
  readonly collection: string
  readonly isList: boolean
  /** After how many milliseconds it is to end. */
  readonly lastsMs: number
  readonly line: string
}

/** The log gives the time of an answer to milliseconds, which may be later than it was. */
const roundingMs = 10

/**
 * What a program has begun since its log was `since` characters long, as the log has it: lists,
 * WatchLists among them, and watches of what it watches already, where that watch had not lasted
 * its own time yet.
 */
export function begunTooEarly(log: string, since: number): string[] {
  const dueAt = new Map<string, number>()
  const note = ({ collection, at, lastsMs }: Begun): unknown =>
    dueAt.set(collection, at + lastsMs - roundingMs)
  for (const each of begunIn(log.slice(0, since))) note(each)
  return begunIn(log.slice(since)).flatMap((each) => {
    const isDue = each.at >= (dueAt.get(each.collection) ?? 0)
    note(each)
    return isDue && !each.isList ? [] : each.line
  })
}

/** The paths of the collections that a program has watched. */
export const watchedPaths = (log: string): string[] =>
  [...new Set(begunIn(log).flatMap(({ collection }) => collection.split(' ', 1)))].toSorted()

function begunIn(log: string): Begun[] {
  return log.split('\n').flatMap((line) => {
    const { month, date, h, m, s, said = '' } = at.exec(line)?.groups ?? {}
    const answer = answers.map((form) => form.exec(said)?.groups).find(Boolean)
    if (!answer) return []
    const { url = '', status, ms } = answer
    const { pathname, search } = new URL(url)
    const info = parseRequestInfo('GET', `${pathname}${search}`)
    if (!info.isResource || (info.verb !== 'list' && info.verb !== 'watch')) return []
    const { query, verb } = info
    const minute = Date.UTC(2024, Number(month) - 1, Number(date), Number(h), Number(m))
    return {
      at: minute + Number(s) * 1000 - Number(ms),
      collection: [pathname, query.get('fieldSelector'), query.get('labelSelector')].join(' '),
      isList: verb === 'list' || isTrue(query.get('sendInitialEvents')),
      lastsMs: Number(query.get('timeoutSeconds') ?? 0) * 1000,
      line: `${verb} ${pathname}${search}: ${status}`,
    }
  })
}
