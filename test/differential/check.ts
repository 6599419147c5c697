import { inspect } from 'node:util'
import { initialEventsEndAnnotation } from '../../src/api/kube/object.ts'
import type { Test } from 'tap'
import { get, nameOf, shared, type RequestCase, type Upstream } from './request-case.ts'
import { documentsWithTags } from './cases/discovery.ts'
import {
  areEqual,
  compareRead,
  compareWatch,
  compareWrite,
  type Compared,
  type Clients,
} from './compare.ts'
import type { DifferenceName } from './differences.ts'
import { fieldOf } from './client.ts'
import { withoutInstances, exact } from './normalize.ts'
import { table, type Subject } from './table.ts'

/** An API server with a hub before it. */
export interface TestBed {
  readonly sort: Upstream
  readonly clients: Clients
  /** The token of a service account without rights. */
  readonly token: string
  /** Forgets all history, so that what was begun before cannot go on. */
  readonly compact: () => Promise<void> | void
}

/** The differences and status codes that the comparison found. */
export interface Findings {
  readonly differences: Set<DifferenceName>
  /** The codes that the API server gave. */
  readonly codes: Set<number>
  /** The watches that broke off through a hub, to be made again. */
  readonly broken: Compared[]
}

/** How many watches may break off in one run, of some hundred. */
const mostBroken = 2

/** Compares the whole table, subject by subject, and the cases that take several requests. */
export async function compareAll(t: Test, testBed: TestBed): Promise<Findings> {
  const findings: Findings = { differences: new Set(), codes: new Set(), broken: [] }
  for (const subject of table) {
    await t.test(subject.name, (t) => compareSubject(t, subject, testBed, findings))
  }
  await t.test('documents asked for again by their tags', async (t) => {
    for (const path of [...documentsWithTags, '/apis']) {
      const first = await testBed.clients.direct.ask(get(path, { Accept: aggregated }))
      const tag = first && fieldOf(first, 'etag')
      if (tag === undefined) continue
      const again = get(path, { Accept: aggregated, 'If-None-Match': tag })
      judge(t, again, await compareRead(again, testBed.clients, exact), testBed, findings)
    }
  })
  await t.test('lists gone on with, until nothing is left to go on with', async (t) => {
    const maps = `/api/v1/namespaces/${shared}/configmaps?limit=2`
    const page = await testBed.clients.direct.ask(get(maps))
    const { metadata } = JSON.parse(page?.body ?? '') as { metadata: { continue: string } }
    const next = get(`${maps}&continue=${metadata.continue}`)
    judge(t, next, await compareRead(next, testBed.clients, exact), testBed, findings)
    await testBed.compact()
    const late = get(`${maps}&continue=${ofLongAgo(metadata.continue)}`)
    judge(t, late, await compareRead(late, testBed.clients, withoutInstances), testBed, findings)
  })
  const broken = findings.broken.map(({ client, name }) => `${client}: ${name}`)
  t.ok(broken.length <= mostBroken, `hardly any watch breaks off: ${broken.join(', ') || 'none'}`)
  return findings
}

/** The same position in a list, at a version that has been compacted. */
function ofLongAgo(token: string): string {
  const place = JSON.parse(Buffer.from(token, 'base64url').toString()) as object
  return Buffer.from(JSON.stringify({ ...place, rv: 1 })).toString('base64url')
}

const aggregated =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

async function compareSubject(
  t: Test,
  { cases, kind, concurrency }: Subject,
  testBed: TestBed,
  findings: Findings,
): Promise<void> {
  const queue = cases.filter(({ only }) => only === undefined || only === testBed.sort)
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      if (next.isWatchListByDefault && !(await endsInitialEvents(next, testBed))) {
        t.comment(`not compared, as the API server takes it for no WatchList: ${nameOf(next)}`)
        continue
      }
      const request = withToken(next, testBed.token)
      judge(t, request, await compare[kind](request, testBed.clients, findings), testBed, findings)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
}

async function endsInitialEvents(request: RequestCase, { clients }: TestBed): Promise<boolean> {
  const answer = await clients.direct.ask(request)
  return answer?.body.includes(initialEventsEndAnnotation) === true
}

const compare = {
  reads: (request: RequestCase, clients: Clients) => compareRead(request, clients, exact),
  writes: compareWrite,
  watches: (request: RequestCase, clients: Clients, { broken }: Findings) =>
    compareWatch(request, clients, (answer) => void broken.push(answer)),
} as const

function judge(
  t: Test,
  request: RequestCase,
  answers: readonly Compared[],
  { sort }: TestBed,
  findings: Findings,
): void {
  const { differs } = request
  const differing = differs && (differs.at ?? sort) === sort ? differs : undefined
  for (const { differsInConnection, direct } of answers) {
    if (differsInConnection) findings.differences.add('connections')
    findings.codes.add(codeOf(direct?.line))
    // The last event of a watch says why it ends.
    const [, code] = /"code":(\d{3})\D/.exec(direct?.body ?? '') ?? []
    findings.codes.add(Number(code))
  }
  const what = nameOf(request)
  if (differing === undefined) {
    const unlike = answers.find((answer) => !areEqual(answer))
    if (unlike?.failure !== undefined) t.comment(`${unlike.client}: ${inspect(unlike.failure)}`)
    if (unlike) t.strictSame(unlike.through, unlike.direct, `${unlike.client}: ${what}`)
    else t.pass(what)
    return
  }
  findings.differences.add(differing.name)
  t.strictSame(
    answers.map((answer) => [answer.client, areEqual(answer), codeOf(answer.through?.line)]),
    answers.map(({ client }) => [client, false, differing.code]),
    `${differing.name}: ${what}`,
  )
}

const codeOf = (line: string | undefined): number => Number(line?.split(' ')[1] ?? 0)

function withToken(request: RequestCase, token: string): RequestCase {
  const { headers } = request
  const given = headers?.['Authorization']
  if (typeof given !== 'string') return request
  return { ...request, headers: { ...headers, Authorization: given.replace('TOKEN', token) } }
}
