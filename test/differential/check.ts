import { inspect } from 'node:util'
import type { Test } from 'tap'
import { get, nameOf, shared, type Asking, type Upstream } from './asking.ts'
import { documentsWithTags } from './cases/discovery.ts'
import {
  areAlike,
  compareRead,
  compareWatch,
  compareWrite,
  type Compared,
  type Doors,
} from './comparing.ts'
import type { DifferenceName } from './differences.ts'
import { fieldOf } from './door.ts'
import { asTwins, exactly } from './likeness.ts'
import { table, type Subject } from './table.ts'

/** A place to compare in: an API server with a hub before it. */
export interface Arena {
  readonly sort: Upstream
  readonly doors: Doors
  /** The token of a service account without rights. */
  readonly token: string
  /** Forgets all history, so that what was begun before cannot go on. */
  readonly compact: () => Promise<void> | void
}

/** What was seen while everything was compared. */
export interface Findings {
  readonly differences: Set<DifferenceName>
  /** The codes that the API server gave. */
  readonly codes: Set<number>
}

/** Compares the whole table, subject by subject, and what has to be asked in several steps. */
export async function compareAll(t: Test, arena: Arena): Promise<Findings> {
  const findings: Findings = { differences: new Set(), codes: new Set() }
  for (const subject of table) {
    await t.test(subject.name, (t) => compareSubject(t, subject, arena, findings))
  }
  await t.test('documents asked for again by their tags', async (t) => {
    for (const path of [...documentsWithTags, '/apis']) {
      const first = await arena.doors.direct.ask(get(path, { Accept: aggregated }))
      const tag = first && fieldOf(first, 'etag')
      if (tag === undefined) continue
      const again = get(path, { Accept: aggregated, 'If-None-Match': tag })
      judge(t, again, await compareRead(again, arena.doors, exactly), arena, findings)
    }
  })
  await t.test('lists gone on with, until nothing is left to go on with', async (t) => {
    const maps = `/api/v1/namespaces/${shared}/configmaps?limit=2`
    const page = await arena.doors.direct.ask(get(maps))
    const { metadata } = JSON.parse(page?.body ?? '') as { metadata: { continue: string } }
    const next = get(`${maps}&continue=${metadata.continue}`)
    judge(t, next, await compareRead(next, arena.doors, exactly), arena, findings)
    await arena.compact()
    const late = get(`${maps}&continue=${ofLongAgo(metadata.continue)}`)
    judge(t, late, await compareRead(late, arena.doors, asTwins), arena, findings)
    const old = get(
      `/api/v1/namespaces/${shared}/configmaps?watch=true&timeoutSeconds=1&resourceVersion=1`,
    )
    judge(t, old, await compareRead(old, arena.doors, asTwins), arena, findings)
  })
  return findings
}

/** The same place in a list as it was in the beginning. */
function ofLongAgo(token: string): string {
  const place = JSON.parse(Buffer.from(token, 'base64url').toString()) as object
  return Buffer.from(JSON.stringify({ ...place, rv: 1 })).toString('base64url')
}

const aggregated =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

async function compareSubject(
  t: Test,
  { askings, kind, abreast }: Subject,
  arena: Arena,
  findings: Findings,
): Promise<void> {
  const queue = askings.filter(({ only }) => only === undefined || only === arena.sort)
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const asking = withToken(next, arena.token)
      judge(t, asking, await compare[kind](asking, arena.doors), arena, findings)
    }
  }
  await Promise.all(Array.from({ length: abreast }, work))
}

const compare = {
  reads: (asking: Asking, doors: Doors) => compareRead(asking, doors, exactly),
  writes: compareWrite,
  watches: compareWatch,
} as const

function judge(
  t: Test,
  asking: Asking,
  answers: readonly Compared[],
  { sort }: Arena,
  findings: Findings,
): void {
  const { differs } = asking
  const differing = differs && (differs.at ?? sort) === sort ? differs : undefined
  for (const { differsInConnection, direct } of answers) {
    if (differsInConnection) findings.differences.add('connections')
    findings.codes.add(codeOf(direct?.line))
    // A watch is told why it ends in its last event.
    const [, told] = /"code":(\d{3})\D/.exec(direct?.body ?? '') ?? []
    findings.codes.add(Number(told))
  }
  const what = nameOf(asking)
  if (differing === undefined) {
    const unlike = answers.find((answer) => !areAlike(answer))
    if (unlike?.failure !== undefined) t.comment(`${unlike.door}: ${inspect(unlike.failure)}`)
    if (unlike) t.strictSame(unlike.through, unlike.direct, `${unlike.door}: ${what}`)
    else t.pass(what)
    return
  }
  findings.differences.add(differing.name)
  t.strictSame(
    answers.map((answer) => [answer.door, areAlike(answer), codeOf(answer.through?.line)]),
    answers.map(({ door }) => [door, false, differing.code]),
    `${differing.name}: ${what}`,
  )
}

const codeOf = (line: string | undefined): number => Number(line?.split(' ')[1] ?? 0)

function withToken(asking: Asking, token: string): Asking {
  const { headers } = asking
  const given = headers?.['Authorization']
  if (typeof given !== 'string') return asking
  return { ...asking, headers: { ...headers, Authorization: given.replace('TOKEN', token) } }
}
