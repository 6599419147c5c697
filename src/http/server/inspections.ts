import { onAbort, type AbortSignalLike } from '../../base/abort.ts'
import { elapsed, sleep } from '../../base/clock.ts'
import { Throttled } from '../../base/throttled.ts'
import type { Incoming, WireReply } from '../exchange/exchange.ts'
import { sourceOf } from '../exchange/chunks.ts'
import { isLoopback } from '../../api/request/host-check.ts'
import { isTrue } from '../../api/request/request-info.ts'
import { opsHeaders, opsReply } from './ops-reply.ts'

/**
 * The reports at `/inspect/<name>`, as JSON: names of API objects, and none of their content but in
 * those of `content`. With
 * `?watch=true` they are sent as server-sent events: first the whole report, then the members of it
 * that have changed, `null` for those that have gone.
 */
export interface Inspections {
  readonly reports: Readonly<Record<string, () => Promise<object>>>
  /** Reports whose watchers are sent the items that are added, as arrays of them. */
  readonly tails?: Readonly<Record<string, Tail>>
  /** Reports with content of API objects, for other callers than the rest. */
  readonly content?: ContentInspections
  /** Whether a caller, which is on loopback, may read them. */
  readonly authorize: (caller: Incoming) => Promise<boolean>
}

interface ContentInspections {
  /** `undefined`: the query names nothing that is stored. */
  readonly reports: Readonly<
    Record<string, (query: URLSearchParams) => Promise<object | undefined>>
  >
  /** Whether a caller, which is on loopback, may read content. */
  readonly authorize: (caller: Incoming) => Promise<boolean>
}

interface Tail {
  /** The items that a query names, without `watch`. Throws for an invalid query. */
  select(query: URLSearchParams): TailItems
}

/** The last items, and those to come until `signal` aborts. */
interface TailItems {
  readonly items: readonly object[]
  follow(signal: AbortSignalLike): AsyncGenerator<readonly object[]>
}

/** One report for all callers, or for one query. */
interface Report {
  readonly whole: () => Promise<WireReply>
  readonly events: Events
}

export const leastInspectionMs = 50

/** The interval of checks for changes, for all watchers of a report together. */
export const watchMs = 2_000

/** After so long without a change a comment shows the watcher that the hub is there. */
const heartbeatMs = 10_000

/** The most watchers of all reports together: people and their browsers. */
export const mostWatchers = 8

/** The JSON of each member of a report. */
type Members = ReadonlyMap<string, string>

/** Answers a request for a report; `undefined` where the path is not one. */
export type Inspect = (
  path: string,
  query: URLSearchParams,
  incoming: Incoming,
) => Promise<WireReply | undefined>

export function inspector(inspections: Inspections | undefined): Inspect {
  if (!inspections) return async () => undefined
  const reports = new Map<string, (query: URLSearchParams) => Report>()
  for (const [name, inspect] of Object.entries(inspections.reports)) {
    const whole = new Throttled(() => wholeReply(inspect), leastInspectionMs)
    const members = new Throttled(() => membersOf(inspect), watchMs)
    const report = { whole: () => whole.get(), events: eventsOf(members) }
    reports.set(`/inspect/${name}`, () => report)
  }
  for (const [name, tail] of Object.entries(inspections.tails ?? {})) {
    reports.set(`/inspect/${name}`, (query) => {
      const selected = tail.select(query)
      return {
        whole: () => wholeReply(async () => ({ items: selected.items })),
        events: (signal) => itemEvents(selected, signal),
      }
    })
  }
  const contents = new Map(
    Object.entries(inspections.content?.reports ?? {}).map(([name, inspect]) => [
      `/inspect/${name}`,
      inspect,
    ]),
  )
  let watchers = 0
  return async (path, query, incoming) => {
    const content = contents.get(path)
    const reportOf = reports.get(path)
    if (!reportOf && !content) return undefined
    const { peer, headers, method, signal } = incoming
    if (!isLoopback(peer.localAddress)) return opsReply(403, onLoopback)
    if (isOfAnotherSite(headers.get('sec-fetch-site'))) return opsReply(403, ofAnotherSite)
    if (content) {
      if (!(await inspections.content?.authorize(incoming))) return opsReply(403, forRootAlone)
      return contentReply(await content(query))
    }
    if (!reportOf) return undefined
    if (!(await inspections.authorize(incoming))) {
      return headers.get('authorization') === undefined
        ? opsReply(403, forRoot)
        : opsReply(401, forRoot, { 'WWW-Authenticate': 'Bearer' })
    }
    const isWatched = isTrue(query.get('watch'))
    const report = selected(reportOf, query)
    if (typeof report === 'string') return opsReply(400, `${report}\n`)
    if (!isWatched || method === 'HEAD') return report.whole()
    if (signal.aborted || watchers >= mostWatchers) return opsReply(503, tooManyWatchers)
    watchers += 1
    onAbort(signal, () => (watchers -= 1))
    return {
      kind: 'bytes',
      status: 200,
      headers: opsHeaders({ 'Content-Type': 'text/event-stream' }),
      from: 'hub',
      source: sourceOf(report.events(signal)),
    }
  }
}

/** The report that a query names, or why there is none. */
function selected(
  reportOf: (query: URLSearchParams) => Report,
  query: URLSearchParams,
): Report | string {
  const rest = new URLSearchParams(query)
  rest.delete('watch')
  try {
    return reportOf(rest)
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause)
  }
}

/**
 * A browser names the site of the page that made it send the request. The hub accepts its own page;
 * a page of another port of this host belongs to another program. Programs other than browsers send
 * no such field.
 */
const isOfAnotherSite = (site: string | undefined): boolean =>
  site !== undefined && site !== 'same-origin' && site !== 'none'

const onLoopback = 'inspections are answered on loopback only\n'
const ofAnotherSite = 'inspections are not answered to pages of other sites\n'
const forRootAlone = 'content of API objects is for root of this node alone\n'
const forRoot =
  "inspections are for root of this node, and for callers with the token in inspect.token under the hub's --root-dir\n"
const tooManyWatchers = `inspections are watched by ${mostWatchers} clients already\n`

const contentReply = (report: object | undefined): WireReply =>
  report
    ? opsReply(200, `${JSON.stringify(report)}\n`, { 'Content-Type': 'application/json' })
    : opsReply(404, 'no component of this node has read objects of this kind\n')

const wholeReply = async (inspect: () => Promise<object>): Promise<WireReply> =>
  opsReply(200, `${JSON.stringify(await inspect())}\n`, { 'Content-Type': 'application/json' })

const membersOf = async (inspect: () => Promise<object>): Promise<Members> =>
  new Map(
    Object.entries(await inspect()).flatMap(([name, value]) => {
      const json = JSON.stringify(value) as string | undefined
      return json === undefined ? [] : [[name, json]]
    }),
  )

type Events = (signal: AbortSignalLike) => AsyncGenerator<readonly Uint8Array[]>

const eventsOf =
  (report: Throttled<Members>): Events =>
  (signal) =>
    changes(report, signal)

/** One event for what was added together; a watcher that is too slow is cut. */
async function* itemEvents(
  tail: TailItems,
  signal: AbortSignalLike,
): AsyncGenerator<readonly Uint8Array[]> {
  for await (const items of tail.follow(signal)) {
    yield [Buffer.from(`data: ${JSON.stringify(items)}\n\n`)]
  }
}

/** One group for each change; the next is made once the client has taken the last. */
async function* changes(
  report: Throttled<Members>,
  signal: AbortSignalLike,
): AsyncGenerator<readonly Uint8Array[]> {
  let shown: Members = new Map()
  let sentAt = elapsed()
  while (!signal.aborted) {
    const present = await report.get()
    const event = eventOf(shown, present)
    shown = present
    if (event !== undefined || elapsed() - sentAt >= heartbeatMs) {
      sentAt = elapsed()
      yield [Buffer.from(event ?? ':\n\n')]
    }
    await sleep(watchMs)
  }
}

/** `undefined` where nothing has changed. */
function eventOf(shown: Members, present: Members): string | undefined {
  const gone = [...shown.keys()].filter((name) => !present.has(name))
  const members = [
    ...[...present].filter(([name, json]) => shown.get(name) !== json),
    ...gone.map((name) => [name, 'null'] as const),
  ]
  if (members.length === 0) return undefined
  const body = members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')
  return `data: {${body}}\n\n`
}
