/**
 * The page of limits against the code: a figure that is changed in one of them and not in the
 * other fails here.
 */
import t from 'tap'
import { readFileSync } from 'node:fs'
import { maxComputingShare } from '../../src/base/throttled.ts'
import { sliceMs } from '../../src/base/time-slices.ts'
import { longestName, longestPath, longestSelectors } from '../../src/hub/cache/recordable.ts'
import { timeoutSeconds } from '../../src/cluster/admission/webhooks.ts'
import * as reviews from '../../src/cluster/review-bodies.ts'
import * as webhook from '../../src/cluster/serve.ts'
import { maxNesting, maxObjectBytes } from '../../src/api/codec/malformed-body.ts'
import { maxDecodedBytes } from '../../src/api/codec/malformed-body.ts'
import { options } from '../../src/config/options.ts'
import { bufferedBytes } from '../../src/http/exchange/chunks.ts'
import { mostOfUnverified } from '../../src/http/client/api-call.ts'
import { maxFileBytes as largestModule } from '../../src/hub/filter/own/load.ts'
import { mostMistakes } from '../../src/hub/filter/own/mistakes.ts'
import { loadTimeoutMs as moduleMs } from '../../src/hub/filter/own/module.ts'
import { mostCollections } from '../../src/hub/filter/shown-states.ts'
import { recentLogBounds } from '../../src/cli/log.ts'
import { mostKinds, mostRequests } from '../../src/hub/wiring/answer-record.ts'
import { mostItems } from '../../src/hub/wiring/status/status.ts'
import { mostUnderWay } from '../../src/hub/wiring/status/status.ts'
import { judgeIntervalMs as bootLookMs } from '../../src/hub/wiring/boot.ts'
import { maxConnections, mostUnproven } from '../../src/hub/wiring/proxies.ts'
import { listedMs } from '../../src/hub/cache/cacher/cachers.ts'
import { cachedShare } from '../../src/hub/wiring/data-path.ts'
import { mostTokens as mostProofs } from '../../src/hub/identity/token-verdicts.ts'
import { mostReadingMs, sliceMs as tableSliceMs } from '../../src/base/socket-table.ts'
import { maxDepth } from '../../src/api/kube/patch/limits.ts'
import { longestStatus, mostRecordedReviews } from '../../src/hub/answers/recorded-reviews.ts'
import { mostSchemas } from '../../src/hub/boot/on-site-documents.ts'
import { maxBodyBytes } from '../../src/hub/answers/offline-writes.ts'
import * as writes from '../../src/hub/answers/node-writes.ts'
import {
  keysPatienceMs,
  keysRetryMs,
  mostFetches,
} from '../../src/hub/pipeline/authentication-outcome.ts'
import { contentBytes } from '../../src/hub/pipeline/pipeline.ts'
import { alwaysServed, bodyMs, requestsShare } from '../../src/hub/pipeline/admission.ts'
import { PriorityShares, type PriorityLevel } from '../../src/hub/pipeline/priority-levels.ts'
import { watchesShare } from '../../src/hub/pipeline/slow-watches.ts'
import { upgradeAnswerMs } from '../../src/hub/upstream/upgrade.ts'
import { unattachedBytes } from '../../src/hub/upstream/attempt.ts'
import { limits } from '../../src/http/server/limits.ts'
import * as inspections from '../../src/http/server/inspections.ts'
import * as ops from '../../src/http/server/ops.ts'
import { batchBytes } from '../../src/hub/store/log/bodies.ts'
import { unsyncedMs } from '../../src/hub/store/log/parts.ts'
import { entryBytes } from '../../src/hub/store/state/scope.ts'
import * as upkeep from '../../src/hub/store/log/upkeep.ts'
import { highWater } from '../../src/hub/store/log/replacement.ts'
import { groupBytes } from '../../src/hub/store/log/write-path.ts'
import * as tracing from '../../src/tracing/opentelemetry.ts'
import { rowsUnder } from '../tables.ts'

const page = readFileSync('docs/limits.md', 'utf8')

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
    'Of these, without a proven caller': [counted(mostUnproven)],
    'TLS handshake': [time(limits.handshakeMs)],
    'Answer to an upgrade': [time(upgradeAnswerMs)],
    'Idle connection': [time(limits.idleMs)],
    'Head of a request': [bytes(limits.headBytes), time(limits.headMs)],
    'Pipelined requests, streams of a connection': [
      counted(limits.pipelined),
      counted(limits.streams),
      counted(limits.unprovenStreams),
    ],
    'Memory of an HTTP/2 session': [`${limits.sessionMegabytes} MB`],
    'Requests of a client whose CA was removed': [time(limits.withdrawnMs)],
    'Streams opened and reset': [
      counted(limits.resets),
      counted(limits.resetsPerSecond),
      counted(limits.unprovenResets),
    ],
    'Short requests': [],
    'Bodies in transit, of short requests': [time(bodyMs)],
    "Looking up the owner of a caller's socket": [time(tableSliceMs), time(mostReadingMs)],
    'Unread part of a body': [bytes(limits.bodyBytes)],
    'Rest of a body, after the answer': [time(limits.restMs)],
    'Body of a write offline': [bytes(maxBodyBytes)],
    'Token request whose answer is recorded': [bytes(contentBytes)],
    'Recorded reviews of one caller': [
      counted(mostRecordedReviews),
      bytes(longestStatus),
      bytes(contentBytes),
    ],
    "Wait until a token's account is known": [
      time(keysPatienceMs),
      time(keysRetryMs),
      counted(mostFetches),
    ],
    'Time between two lists of an unstored collection': [time(listedMs / 2), time(listedMs)],
    "Events and statuses shown to root's kubectl offline": [
      counted(writes.maxWrites),
      bytes(writes.maxBytes),
      time(writes.eventLifetimeMs),
    ],
    'Answer that its client does not read': [bytes(limits.answerBytes), time(limits.stalledMs)],
    'Memory of all slow watches together': [part(watchesShare)],
    'Event logs of all watched collections, in memory': [part(cachedShare)],
    'Memory of all short requests together': [part(requestsShare)],
    'Size of the process': [`${alwaysServed} short requests`],
  },
  '### Priority levels': {
    '`node`': [],
    '`workload`': [part(share('workload'))],
    '`unproven`': [part(share('unproven'))],
  },
  '## Probes and scrapers': {
    Connections: [counted(ops.mostConnections)],
    'Pipelined requests': [counted(ops.mostPipelined)],
    'Answer that its client does not read': [time(ops.stalledMs)],
    'A new bootstrap token, of root': [bytes(ops.largestToken)],
    'Computing metrics': [time(ops.leastExpositionMs), part(maxComputingShare)],
    'Computing a report of `/inspect/…`': [
      time(inspections.leastInspectionMs),
      part(maxComputingShare),
      time(sliceMs),
    ],
    'Watchers of `/inspect/…`': [counted(inspections.mostWatchers), time(inspections.watchMs)],
    'Requests of `/inspect/requests`': [counted(mostRequests)],
    'Lists of `/inspect/status`': [counted(mostItems), counted(mostUnderWay), counted(mostKinds)],
    'Lines of the log in `/inspect/status`': [
      counted(recentLogBounds.lines),
      bytes(recentLogBounds.length),
    ],
    'Boot verdict in metrics and readiness': [time(bootLookMs), time(sliceMs)],
  },
  '## API servers': {
    'Object, frame of a watch': [bytes(maxObjectBytes)],
    'Nesting of JSON': [counted(maxNesting)],
    'Bytes around the objects of a list': [bytes(maxObjectBytes)],
    'Read-ahead of a slow client': [bytes(bufferedBytes), bytes(unattachedBytes)],
    'Inflated read-ahead': [bytes(bufferedBytes)],
    'Answer of an unverified server, at bootstrap': [bytes(mostOfUnverified)],
  },
  "## The cluster's side": {
    'Review, with the old and the new object': [bytes(reviews.largestBody), `${maxDepth} levels`],
    'Bodies of all reviews together': [
      bytes(webhook.admissionBytes),
      bytes(webhook.conversionBytes),
    ],
    'Body of a review in transit': [time(reviews.arrivalMs)],
    'Time of an answer': [time(webhook.longestMs), `API servers wait ${timeoutSeconds} seconds`],
    'Connections of API servers and probes': [
      counted(webhook.mostConnections),
      counted(webhook.mostUnproven),
    ],
  },
  '## The cache': {
    'Size of the cache': [part(upkeep.evictAbove), part(upkeep.evictDownTo)],
    'Lists in transit for one caller': [part(upkeep.stagedShare)],
    'Garbage in the log': [bytes(upkeep.floorBytes), `a ${1 / upkeep.floorShare}th`],
    'Name, namespace, path of a document': [counted(longestName)],
    'Both selectors of a list or watch': [counted(longestSelectors)],
    'Representation of a document': [],
    'Schemas recorded beforehand': [`${mostSchemas} groups`],
    'Written, not yet synced': [time(unsyncedMs)],
    'Waiting to be written': [bytes(highWater)],
    'Written at once': [bytes(groupBytes)],
    'Filter states remembered of programs': [counted(mostCollections)],
  },
  '## Tracing': {
    'Pending spans': [counted(tracing.mostPendingSpans)],
    'Request to the collector': [`${tracing.batchSpans} spans`, time(tracing.exportMs)],
    'Wait for the last spans at a stop': [time(tracing.flushMs)],
    'Value of an attribute': [`${counted(tracing.longestValue)} characters`],
  },
  '## Filters of your own': {
    'File of `--filter-module`': [bytes(largestModule)],
    'Reported mistakes': [`${mostMistakes} mistakes`],
    'Loading of a module': [time(moduleMs)],
    'Value read at one path': [bytes(maxDecodedBytes)],
    'Loaded versions of modules': [],
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
  void t.test(`${heading}: the figures are those of the code`, async (t) => {
    const rows = rowsUnder(page, heading)
    t.strictSame(
      rows.map(([what]) => what),
      Object.keys(expected),
    )
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
