import t from 'tap'
import {
  closedMs,
  ScopedDecisions,
  type Scope,
} from '../../../src/hub/authorization/scoped-decisions.ts'

const scope = (namespace: string, name = '', selectors = ''): Scope => ({
  namespace,
  name,
  selectors,
})

const everywhere = scope('')
const inA = scope('a')
const labelled = scope('a', '', 'app=web')

function denied(...scopes: readonly Scope[]): ScopedDecisions {
  const decisions = new ScopedDecisions()
  scopes.forEach((each, i) => decisions.deny(each, i + 1, true))
  return decisions
}

const isRefused = (decisions: ScopedDecisions, of: Scope): boolean =>
  decisions.refusal(of) !== undefined

void t.test('a denial refuses the same request, and each that includes it', async (t) => {
  const decisions = denied(inA)
  t.strictSame(decisions.refusal(inA), { kind: 'denied', at: 1 })
  t.ok(isRefused(decisions, everywhere), 'a list of all namespaces has this one')
  t.notOk(isRefused(decisions, scope('b')), 'another namespace may have another role')
  t.notOk(isRefused(decisions, scope('a', 'one')), 'a role may name this object')
  const named = denied(scope('a', 'one'))
  t.ok(isRefused(named, inA), 'who may read all may read this one')
  t.notOk(isRefused(named, scope('a', 'two')))
})

void t.test('a selector does not narrow a denial', async (t) => {
  t.ok(isRefused(denied(inA), labelled))
  t.ok(isRefused(denied(labelled), inA))
  t.ok(isRefused(denied(labelled), scope('a', '', 'app=db')))
})

void t.test('a later permission lifts the denials that it includes', async (t) => {
  const decisions = denied(inA, scope('b'), scope('b', 'one'))
  t.ok(decisions.allow(scope('b'), 9, true, Infinity))
  t.notOk(isRefused(decisions, scope('b')))
  t.notOk(isRefused(decisions, scope('b', 'one')))
  t.ok(isRefused(decisions, inA))
  t.ok(decisions.allow(everywhere, 9, true, Infinity))
  t.ok(decisions.isEmpty)
  t.notOk(decisions.allow(everywhere, 9, true, Infinity), 'nothing is left to write')
})

void t.test('a permission under a selector lifts the denial for that alone', async (t) => {
  const decisions = denied(inA)
  t.ok(decisions.allow(labelled, 2, true, Infinity))
  t.notOk(isRefused(decisions, labelled))
  t.ok(isRefused(decisions, inA), 'an authorizer may look at selectors')
  t.ok(isRefused(decisions, scope('a', '', 'app=db')))
  t.ok(decisions.deny(inA, 3, true), 'though it was denied a moment ago')
  t.ok(isRefused(decisions, labelled), 'the newest decision counts')
})

void t.test('a denial that repeats another is written once in ten minutes', async (t) => {
  const decisions = new ScopedDecisions()
  const minute = 60_000
  t.ok(decisions.deny(inA, minute, true))
  t.notOk(decisions.deny(inA, 10 * minute, true))
  t.ok(decisions.deny(inA, 11 * minute, true))
  t.strictSame(decisions.refusal(inA), { kind: 'denied', at: 11 * minute })
  t.ok(decisions.deny(inA, 5 * minute, true), 'the clock was set back')
})

void t.test('without room, everything that was not allowed since is refused', async (t) => {
  const decisions = denied(scope('a', 'one'))
  t.ok(decisions.deny(scope('a', 'two'), 2, false))
  t.strictSame(decisions.refusal(scope('a', 'one')), { kind: 'denied', at: 1 })
  for (const name of ['two', 'three'])
    t.strictSame(decisions.refusal(scope('a', name)), { kind: 'closed' }, name)
  t.ok(decisions.allow(scope('a', 'three'), 3, true, Infinity))
  t.notOk(isRefused(decisions, scope('a', 'three')))
  t.ok(decisions.allow(scope('a', 'one'), 3, true, Infinity))
  t.notOk(
    isRefused(decisions, scope('a', 'three')),
    'that something else is allowed changes nothing',
  )
  t.ok(decisions.deny(scope('a', 'three'), 4, false), 'the newest decision counts')
  t.ok(isRefused(decisions, scope('a', 'three')))
  t.notOk(
    decisions.allow(scope('a', 'two'), 5, false, Infinity),
    'nor is there room for an exception',
  )
  t.ok(isRefused(decisions, scope('a', 'two')))
  t.ok(decisions.allow(everywhere, 6, false, Infinity))
  t.ok(decisions.isEmpty)
})

void t.test('denials beyond the room are written once in ten minutes', async (t) => {
  const minute = 60_000
  const decisions = denied(scope('a', 'one'))
  t.ok(decisions.deny(scope('a', 'two'), minute, false))
  for (const name of ['two', 'three'])
    t.notOk(decisions.deny(scope('a', name), 10 * minute, true), 'nor does room make a difference')
  t.equal(decisions.stored.length, 1)
  t.ok(decisions.deny(scope('a', 'four'), 11 * minute, false))
  t.equal(decisions.closedAt, 11 * minute)
})

void t.test('a permission opens a closed caller an hour after the last denial', async (t) => {
  let elapsed = 0
  t.capture(performance, 'now', () => elapsed)
  const decisions = denied(scope('a', 'one'))
  for (elapsed of [0, 9 * 60_000]) decisions.deny(scope('a', 'two'), 2, false)
  elapsed += closedMs - 1
  const later = 10 * closedMs
  t.notOk(decisions.allow(scope('a', 'three'), later, false, Infinity), 'whatever the clock says')
  t.ok(isRefused(decisions, scope('a', 'four')))
  elapsed += 1
  t.ok(decisions.allow(scope('a', 'three'), 3, false, Infinity))
  t.notOk(isRefused(decisions, scope('a', 'four')))
  t.ok(isRefused(decisions, scope('a', 'one')), 'what is remembered stays denied')
})

void t.test('a restart does not shorten that hour, also where the clock was ahead', async (t) => {
  for (const closedAt of [1, 2 * closedMs]) {
    const read = ScopedDecisions.from(closedAt, [])
    const opens = (at: number): boolean => {
      read.allow(scope('a', 'one'), at, false, Infinity)
      return !isRefused(read, scope('a', 'two'))
    }
    t.notOk(opens(closedMs))
    t.ok(opens(closedAt === 1 ? 1 + closedMs : 2 * closedMs))
  }
})
