/**
 * The page of limits against the code: a figure that is changed in one of them and not in the
 * other fails here. What happens beyond a limit is shown by the tests that docs/design names.
 */
import t from 'tap'
import { readFileSync } from 'node:fs'
import { maxComputingShare } from '../../src/base/throttled.ts'
import { sliceMs } from '../../src/base/time-slices.ts'
import { mostPagedLists, nextPageMs } from '../../src/hub/cache/recorded-list.ts'
import { longestName, longestPath, longestSelectors } from '../../src/hub/cache/recordable.ts'
import * as tokens from '../../src/hub/cache/token-cache.ts'
import { timeoutSeconds } from '../../src/cluster/admission/webhooks.ts'
import * as reviews from '../../src/cluster/review-bodies.ts'
import * as webhook from '../../src/cluster/serve.ts'
import { maxNesting, maxObjectBytes } from '../../src/api/codec/malformed-body.ts'
import { maxDecodedBytes } from '../../src/api/codec/decode-limit.ts'
import { options } from '../../src/config/options.ts'
import { bufferedBytes } from '../../src/http/exchange/chunks.ts'
import { mostOfUnverified } from '../../src/http/client/api-call.ts'
import { unpackedBytes } from '../../src/http/exchange/unpacked.ts'
import { mostPods } from '../../src/hub/filter/host-network/shown-pods.ts'
import { maxFileBytes as largestModule } from '../../src/hub/filter/own/load.ts'
import { mostMistakes } from '../../src/hub/filter/own/mistakes.ts'
import { loadTimeoutMs as moduleMs } from '../../src/hub/filter/own/module.ts'
import { mostCollections } from '../../src/hub/filter/shown-states.ts'
import { recentLogBounds } from '../../src/cli/log.ts'
import { mostRequests } from '../../src/hub/wiring/recent-requests.ts'
import { mostKinds } from '../../src/hub/wiring/answer-counts.ts'
import { mostItems } from '../../src/hub/wiring/status/status.ts'
import { judgeIntervalMs as bootLookMs } from '../../src/hub/wiring/boot.ts'
import { maxConnections, mostUnproven } from '../../src/hub/wiring/proxies.ts'
import { listedMs } from '../../src/hub/cache/cacher/cachers.ts'
import { cachedBytes, cachedGroups, cachedShare } from '../../src/hub/wiring/cachers.ts'
import { reviewRetryMs } from '../../src/hub/identity/claims.ts'
import { mostTokens as mostProofs } from '../../src/hub/identity/token-verdicts.ts'
import { mostReadingMs, sliceMs as tableSliceMs } from '../../src/base/socket-table.ts'
import { longReadingMs } from '../../src/hub/identity/socket-owner.ts'
import { maxDepth } from '../../src/api/kube/patch/limits.ts'
import { longestStatus, mostRecordedReviews } from '../../src/hub/answers/recorded-reviews.ts'
import { mostSchemaBytes, mostSchemas, schemaShare } from '../../src/hub/boot/recorded-schemas.ts'
import { maxBodyBytes } from '../../src/hub/answers/request-object.ts'
import * as events from '../../src/hub/answers/node-events.ts'
import * as overlays from '../../src/hub/answers/status-overlays.ts'
import {
  mostReviews,
  reviewTimeoutMs as accountMs,
} from '../../src/hub/pipeline/confirmed-account.ts'
import { contentBytes } from '../../src/hub/pipeline/pipeline.ts'
import { bodyMs } from '../../src/hub/pipeline/in-flight.ts'
import { alwaysServed, requestsShare } from '../../src/hub/pipeline/memory.ts'
import { PriorityShares, type PriorityLevel } from '../../src/hub/pipeline/priority-levels.ts'
import { watchesShare } from '../../src/hub/pipeline/slow-watches.ts'
import { upgradeAnswerMs } from '../../src/hub/upstream/upgrade.ts'
import { unattachedBytes } from '../../src/hub/upstream/upstream-body.ts'
import { limits } from '../../src/http/server/limits.ts'
import * as inspections from '../../src/http/server/inspections.ts'
import * as ops from '../../src/http/server/ops.ts'
import { batchBytes } from '../../src/hub/store/log/batches.ts'
import { unsyncedMs } from '../../src/hub/store/log/open.ts'
import { entryBytes } from '../../src/hub/store/log/scope.ts'
import * as upkeep from '../../src/hub/store/log/upkeep.ts'
import { groupBytes, highWater } from '../../src/hub/store/log/write-path.ts'
import * as tracing from '../../src/tracing/opentelemetry.ts'
import { isThere, testsIn } from '../named-tests.ts'
import { rowsUnder } from '../tables.ts'

const page = readFileSync('docs/limits.md', 'utf8')

const evidence = readFileSync('docs/design/limits-tests.md', 'utf8')

const counted = (n: number): string => n.toLocaleString('en-US')

function bytes(n: number): string {
  const [unit, of] = n % 2 ** 20 === 0 ? [2 ** 20, 'MiB'] : [2 ** 10, 'KiB']
  return `${counted(n / unit)} ${of}`
}

function time(ms: number): string {
  if (ms < 1_000) return `${ms} ms`
  const [unit, of] = ms % 60_000 === 0 ? [60_000, 'minute'] : [1_000, 'second']
  return `${counted(ms / unit)} ${of}${ms === unit ? '' : 's'}`
}

const parts = new Map([
  [1 / 64, 'a 64th'],
  [1 / 32, 'a 32nd'],
  [1 / 10, 'a tenth'],
  [1 / 8, 'an eighth'],
  [1 / 4, 'a quarter'],
  [1 / 2, 'half'],
  [3 / 5, 'three fifths'],
  [7 / 10, 'seven tenths'],
  [3 / 4, 'three quarters'],
  [4 / 5, 'eight tenths'],
  [7 / 8, 'seven eighths'],
  [9 / 10, 'nine tenths'],
])
const part = (x: number): string =>
  parts.get(Number(x.toFixed(6))) ?? `${x}, for which there is no word here`

const ticks = (n: number): string => time(n * reviews.tickMs)

/** What a level may take of a hundred seats. */
const share = (level: PriorityLevel): number => new PriorityShares(() => 100).limit(level) / 100
const seats = Number(options['max-requests-in-flight'].default)
const seatsOf = (level: PriorityLevel): number => new PriorityShares(() => seats).limit(level)

/**
 * The figures of each row, as the page writes them and in its order; those in quotes alone are no
 * constants of the code.
 */
const tables: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  '## Clients': {
    'Connections of a listener': [counted(maxConnections)],
    'Of these, on which no caller is proven': [counted(mostUnproven)],
    'A TLS handshake': [time(limits.handshakeMs)],
    'The answer to an upgrade': [time(upgradeAnswerMs)],
    'A connection without a request': [time(limits.idleMs)],
    'A head': [bytes(limits.headBytes), time(limits.headMs)],
    'Requests ahead of their answers on a connection': [
      counted(limits.pipelined),
      counted(limits.unprovenPipelined),
      counted(limits.streams),
      counted(limits.unprovenStreams),
    ],
    'What HTTP/2 keeps of one connection': [`${limits.sessionMegabytes} MB`],
    'Refusals in a row on a connection': [counted(limits.refusals)],
    "Requests of a withdrawn authority's client": [time(limits.withdrawnMs)],
    'Streams that are opened and reset': [
      counted(limits.resets),
      counted(limits.resetsPerSecond),
      counted(limits.unprovenResets),
    ],
    'Short requests': [],
    'Bodies on their way, of short requests': [time(bodyMs)],
    "Looking up whose socket a caller's is": [
      time(tableSliceMs),
      time(mostReadingMs),
      time(longReadingMs),
    ],
    'A body that waits to be read': [bytes(limits.bodyBytes)],
    'The rest of a body, after the answer': [time(limits.restMs), time(limits.unprovenMs)],
    'The body of a write that is answered offline': [bytes(maxBodyBytes)],
    'A token request whose answer is kept': [bytes(contentBytes)],
    'Tokens that are kept for one caller': [counted(tokens.mostTokens), time(tokens.sweepMs)],
    'Answers to reviews that are kept for one caller': [
      counted(mostRecordedReviews),
      bytes(longestStatus),
      bytes(contentBytes),
    ],
    "The wait until a token's account is known": [
      time(accountMs),
      time(reviewRetryMs),
      counted(mostReviews),
    ],
    'Between two lists of a collection that is not stored': [time(listedMs / 2), time(listedMs)],
    'Status that is written offline': [
      `${counted(overlays.maxOverlays)} objects`,
      bytes(overlays.maxBytes),
    ],
    'Events of the node, shown to a person there offline': [
      counted(events.maxEvents),
      bytes(events.maxBytes),
      time(events.eventLifetimeMs),
    ],
    'An answer that its client does not take': [
      bytes(limits.answerBytes),
      time(limits.stalledMs),
      time(limits.unprovenMs),
    ],
    'What watches hold beyond that, together': [part(watchesShare)],
    'Events of a watched collection, in memory': [
      bytes(cachedBytes),
      `${counted(cachedGroups)} groups`,
      part(cachedShare),
    ],
    'What short requests hold together': [part(requestsShare)],
    'The size of the process': [`${alwaysServed} short requests`],
  },
  '### Priority levels': {
    '`node`': [],
    '`workload`': [part(share('workload'))],
    '`unproven`': [part(share('unproven'))],
  },
  '## Probes and scrapers': {
    Connections: [counted(ops.mostConnections)],
    'Requests ahead of their answers': [counted(ops.mostPipelined)],
    'An answer that its client does not take': [time(ops.stalledMs)],
    'A new bootstrap token, of root': [bytes(ops.largestToken)],
    'Making metrics': [time(ops.leastExpositionMs), part(maxComputingShare)],
    'Making the report of `/inspect/…`': [
      time(inspections.leastInspectionMs),
      part(maxComputingShare),
      time(sliceMs),
    ],
    'Watchers of `/inspect/…`': [counted(inspections.mostWatchers), time(inspections.watchMs)],
    'Requests of `/inspect/requests`': [counted(mostRequests)],
    'Lists of `/inspect/status`': [counted(mostItems), counted(mostKinds)],
    'Lines of the log in `/inspect/status`': [
      counted(recentLogBounds.lines),
      bytes(recentLogBounds.length),
    ],
    'What metrics and readiness say of booting': [time(bootLookMs), time(sliceMs)],
  },
  '## API servers': {
    'An object, a frame of a watch': [bytes(maxObjectBytes)],
    'Depth of JSON': [counted(maxNesting)],
    'What surrounds the objects of a list': [bytes(maxObjectBytes)],
    'What is read ahead of a slow client': [bytes(bufferedBytes), bytes(unattachedBytes)],
    'What is inflated ahead of its reader': [bytes(unpackedBytes)],
    'The answer of a server that is not verified yet, at bootstrap': [bytes(mostOfUnverified)],
  },
  "## The cluster's side": {
    'A review, with the object before and now': [bytes(reviews.largestBody), `${maxDepth} levels`],
    'Bodies of reviews together, as announced': [
      bytes(webhook.admissionBytes),
      bytes(webhook.conversionBytes),
      bytes(reviews.leastBytes),
      ticks(reviews.queueTicks),
    ],
    'Requests that wait for that': [counted(reviews.mostQueued)],
    'A body of a review on its way': [
      ticks(reviews.idleTicks),
      ticks(reviews.arrivalTicks),
      ticks(reviews.graceTicks),
    ],
    'The time that an answer takes': [
      time(webhook.longestMs),
      `API servers wait ${timeoutSeconds} seconds`,
    ],
    'Connections of API servers and probes': [
      counted(webhook.mostConnections),
      counted(webhook.mostUnproven),
    ],
  },
  '## The cache': {
    'What is stored': [part(upkeep.evictAbove), part(upkeep.evictDownTo)],
    'What one caller has of it': [part(upkeep.quotaShare), part(1 - upkeep.quotaTarget)],
    'Lists on their way for one caller': [part(upkeep.quotaShare)],
    'Garbage in its log': [bytes(upkeep.floorBytes), `a ${1 / upkeep.floorShare}th`],
    'A name or a namespace, the path of a document': [counted(longestName)],
    'Both selectors of a list or watch': [counted(longestSelectors)],
    'A representation of a document': [],
    'Schemas that are recorded beforehand': [
      bytes(mostSchemaBytes),
      `a ${1 / schemaShare}th`,
      `${mostSchemas} groups`,
    ],
    'Lists in pages whose next page has not come': [counted(mostPagedLists), time(nextPageMs)],
    'What is written and not yet synced': [time(unsyncedMs)],
    'What waits to be written': [bytes(highWater)],
    'What is written at once': [bytes(groupBytes)],
    "Which filters a program's last answers passed": [counted(mostCollections)],
    'Pods whose network is kept': [counted(mostPods)],
  },
  '## Tracing': {
    'Spans that are not exported yet': [counted(tracing.mostPendingSpans)],
    'A request to the collector': [`${tracing.batchSpans} spans`, time(tracing.exportMs)],
    'The wait of a stop for the last spans': [time(tracing.flushMs)],
    'The value of an attribute': [`${counted(tracing.longestValue)} characters`],
  },
  '## Filters of your own': {
    'A file of `--filter-module`': [bytes(largestModule)],
    'What is said of files that are wrong': [`${mostMistakes} mistakes`],
    'A module until it has loaded': [time(moduleMs)],
    'What it takes of an object as a whole': [bytes(maxDecodedBytes)],
    'Versions of modules that were loaded': [],
  },
}

/** Codes of answers, and versions of protocols and APIs, are no limits. */
const noFigures = /\b(?:40[0138]|41[03]|429|431|50[34])\b|HTTP\/[12](?:\.1)?|\bv[23]\w*/g
const aFigure = /\d|\b(?:half|quarters?|eighths?|tenths?|hundred|thousand)\b/

/**
 * What is left of a text without the figures, which stand there in this order; or the figure that
 * does not.
 */
function without(text: string, figures: readonly string[]): { rest: string } | { missing: string } {
  let rest = ''
  let after = text
  for (const figure of figures) {
    const found = new RegExp(String.raw`(?<![\w,.])${figure}(?!\w|[,.]\d)`).exec(after)
    if (!found) return { missing: figure }
    rest += after.slice(0, found.index)
    after = after.slice(found.index + figure.length)
  }
  return { rest: rest + after }
}

for (const [heading, expected] of Object.entries(tables)) {
  void t.test(`${heading}: the figures are those of the code, and tests hold them`, async (t) => {
    const rows = rowsUnder(page, heading)
    t.strictSame(
      rows.map(([what]) => what),
      Object.keys(expected),
    )
    const held = rowsUnder(evidence, heading.replace('###', '##'))
    t.strictSame(
      held.map(([what]) => what),
      Object.keys(expected),
    )
    for (const [what = '', by = ''] of held) {
      const named = testsIn(by)
      t.ok(named.length > 0, `${what} names a test`)
      for (const test of named) t.ok(isThere(test), `${what}: ${test.file}: ${test.title}`)
    }
    for (const row of rows) {
      const [what = ''] = row
      const said = row.slice(1).join(' ').replaceAll(noFigures, '')
      const result = without(said, expected[what] ?? [])
      if ('missing' in result) t.fail(`${what}: the code has ${result.missing}; the page: ${said}`)
      else t.notMatch(result.rest, aFigure, `${what}: no constant of the code`)
    }
  })
}

void t.test('figures outside the tables hold, too', async (t) => {
  const prose = page
    .split('\n')
    .filter((line) => !line.startsWith('|'))
    .join(' ')
    .replaceAll(/\s+/g, ' ')
  for (const said of [
    `as it takes for ${counted(mostUnproven)} more to come`,
    `with the default of ${seats} seats, ${seats - seatsOf('workload')} are the node's alone, and callers who have proved nothing have ${seatsOf('unproven')}`,
    `accepted (${counted(mostProofs)}) is kept apart from which they refused (${counted(mostProofs)})`,
    `are read ${bytes(batchBytes)} at a time`,
    `each object count ${entryBytes} bytes`,
    `${bytes(Number(options['cache-max-bytes'].default))} is some twenty times`,
  ])
    t.ok(prose.includes(said), said)
  t.equal(longestPath, longestName)
})
