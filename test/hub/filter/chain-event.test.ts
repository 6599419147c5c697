import t from 'tap'
import { cursorOf } from '../../../src/api/codec/cursor.ts'
import { listKind, objectKind } from '../../../src/api/codec/list.ts'
import { isObjectEvent, type ObjectEvent, type WatchEvent } from '../../../src/api/codec/watch.ts'
import { filterEvent } from '../../../src/hub/filter/chain.ts'
import type { ApiObject } from '../../../src/api/kube/object.ts'
import { expired } from '../../../src/api/kube/status.ts'
import { cutList } from '../../contracts/cutter-list.ts'
import { fixture } from '../../kit/fixture.ts'
import { filtersOf } from '../../kit/inputs.ts'

const pods = { group: '', version: 'v1', resource: 'pods' }
const pod = { group: '', version: 'v1', kind: 'Pod' }

/** Passes objects with show=yes, edits those with show=edit, and withholds others. */
const chain = filtersOf(
  [
    {
      name: 'shown',
      rules: [{ components: ['kubelet'], group: '', resources: ['pods'], verbs: ['watch'] }],
      onError: 'withhold',
      needs: [],
      create: () => (object) => {
        const show = object.label('show')
        if (show === 'edit') return [{ op: 'set', path: ['metadata', 'labels', 'x'], value: 'y' }]
        return show === 'yes' ? 'leave' : 'withhold'
      },
    },
  ],
  {},
  (name, cause) => t.fail(name, { cause }),
).chainFor('kubelet', pods, 'watch')

if (!chain) throw new Error('no chain')

type Show = 'yes' | 'edit' | 'no'

function object(show: Show, resourceVersion: string): ApiObject {
  const metadata = { name: 'a', namespace: 'n', resourceVersion, labels: { show } }
  const bytes = Buffer.from(JSON.stringify({ metadata, spec: { of: resourceVersion } }))
  return { namespace: 'n', name: 'a', uid: 'u', resourceVersion, bytes }
}

const frame = Buffer.from('frame')

function event(type: ObjectEvent['type'], show: Show, before?: Show): ObjectEvent {
  const previous = before && object(before, '1')
  return { type, object: object(show, '2'), frame, ...(previous && { previous }) }
}

/** Type, version, whose content, mark of the edit, and whether the frame is the event's own. */
function summary(judged: WatchEvent | undefined): unknown {
  if (!judged) return 'nothing'
  if (!isObjectEvent(judged)) return judged.type
  const cursor = cursorOf('json', pod, judged.object)
  return [
    judged.type,
    judged.object.resourceVersion,
    cursor.value(['metadata', 'resourceVersion']),
    cursor.value(['spec', 'of']),
    cursor.label('x') ?? '',
    judged.frame === frame,
  ]
}

const judge = (given: WatchEvent) => filterEvent(chain, pod, 'json', given)

void t.test('an event’s type follows from what was shown before and is now', async (t) => {
  const now = (type: string, edited: boolean, own: boolean) => [
    type,
    '2',
    '2',
    '2',
    edited ? 'y' : '',
    own,
  ]
  /** The previous object after the filter, at the version of the event. */
  const gone = (edited: boolean) => ['DELETED', '2', '2', '1', edited ? 'y' : '', false]
  const cases: readonly (readonly [ObjectEvent['type'], Show | undefined, Show, unknown])[] = [
    // An object that passed and still passes keeps its type, and its frame unless it is edited.
    ['MODIFIED', 'yes', 'yes', now('MODIFIED', false, true)],
    ['MODIFIED', 'edit', 'yes', now('MODIFIED', false, true)],
    ['MODIFIED', 'yes', 'edit', now('MODIFIED', true, false)],
    ['ADDED', 'yes', 'yes', now('ADDED', false, true)],
    // Newly shown.
    ['MODIFIED', 'no', 'yes', now('ADDED', false, false)],
    ['MODIFIED', 'no', 'edit', now('ADDED', true, false)],
    ['ADDED', 'no', 'yes', now('ADDED', false, true)],
    ['ADDED', undefined, 'yes', now('ADDED', false, true)],
    ['ADDED', undefined, 'edit', now('ADDED', true, false)],
    ['MODIFIED', undefined, 'yes', now('MODIFIED', false, true)],
    ['MODIFIED', undefined, 'edit', now('MODIFIED', true, false)],
    // No longer shown.
    ['MODIFIED', 'yes', 'no', gone(false)],
    ['MODIFIED', 'edit', 'no', gone(true)],
    ['ADDED', 'yes', 'no', gone(false)],
    // Perhaps no longer shown: taken back, to be safe.
    ['MODIFIED', undefined, 'no', now('DELETED', false, false)],
    // Never shown.
    ['MODIFIED', 'no', 'no', 'nothing'],
    ['ADDED', 'no', 'no', 'nothing'],
    ['ADDED', undefined, 'no', 'nothing'],
    // Deleted.
    ['DELETED', 'yes', 'yes', now('DELETED', false, true)],
    ['DELETED', 'edit', 'edit', now('DELETED', true, false)],
    ['DELETED', 'yes', 'no', gone(false)],
    ['DELETED', 'edit', 'no', gone(true)],
    ['DELETED', 'no', 'no', 'nothing'],
    ['DELETED', 'no', 'yes', 'nothing'],
    ['DELETED', undefined, 'yes', now('DELETED', false, true)],
    ['DELETED', undefined, 'edit', now('DELETED', true, false)],
    ['DELETED', undefined, 'no', now('DELETED', false, true)],
  ]
  for (const [type, before, show, expected] of cases) {
    const given = event(type, show, before)
    t.strictSame(summary(judge(given)), expected, `${type} ${before} -> ${show}`)
  }
})

void t.test('an event of an object left alone is the same event', async (t) => {
  const given = event('MODIFIED', 'yes', 'yes')
  t.equal(judge(given), given)
})

void t.test('bookmarks and errors pass unfiltered', async (t) => {
  const bookmark: WatchEvent = {
    type: 'BOOKMARK',
    resourceVersion: '5',
    initialEventsEnd: true,
    frame,
  }
  const error: WatchEvent = { type: 'ERROR', status: expired('old'), frame }
  t.equal(judge(bookmark), bookmark)
  t.equal(judge(error), error)
})

void t.test('a replay of any history leaves its reader with what a list would show', async (t) => {
  const shows: readonly (Show | undefined)[] = ['yes', 'edit', 'no', undefined]
  // All histories of one object over four changes, undefined being its absence.
  for (let code = 0; code < shows.length ** 4; code++) {
    const history = [0, 1, 2, 3].map((at) => shows[Math.floor(code / shows.length ** at) % 4])
    for (const knowsPrevious of [true, false]) {
      let held: string | undefined
      let before: ApiObject | undefined
      for (const [at, show] of history.entries()) {
        const version = String(at + 1)
        const next = show && object(show, version)
        if (!next && !before) continue
        const type = !next ? 'DELETED' : before ? 'MODIFIED' : 'ADDED'
        const shown = next ?? { ...(before as ApiObject), resourceVersion: version }
        const judged = judge({
          type,
          object: shown,
          ...(knowsPrevious && before && { previous: before }),
        })
        if (judged?.type === 'DELETED') held = undefined
        else if (judged?.type === 'ADDED' || judged?.type === 'MODIFIED') {
          if (knowsPrevious && (judged.type === 'ADDED') !== (held === undefined)) {
            t.fail(`${judged.type} of what is ${held ? '' : 'not '}held in ${history.join()}`)
          }
          held = Buffer.from(judged.object.bytes).toString()
        }
        before = next
        const listed = next && chain.apply(pod, 'json', next)
        const expected = listed && Buffer.from(listed.bytes).toString()
        if (held !== expected) t.fail(`${history.join()} after ${version}`)
      }
    }
  }
  t.pass('all histories')
})

void t.test(
  'an object that is taken back is shown at its last version in protobuf too',
  async (t) => {
    const { objects, head } = cutList('protobuf', 'object', [fixture('pods-list.pb')])
    const gvk = objectKind(head.gvk)
    t.strictSame(listKind(gvk), head.gvk)
    const [bare, collector] = objects
    if (!bare || !collector) throw new Error('no pods')
    const labelled = filtersOf(
      [
        {
          name: 'labelled',
          rules: [{ components: ['kubelet'], group: '', resources: ['pods'], verbs: ['watch'] }],
          onError: 'withhold',
          needs: [],
          create: () => (one) => (one.label('app') === undefined ? 'withhold' : 'leave'),
        },
      ],
      {},
      (name, cause) => t.fail(name, { cause }),
    ).chainFor('kubelet', pods, 'watch')
    const given: WatchEvent = { type: 'MODIFIED', object: bare, previous: collector }
    const judged = labelled && filterEvent(labelled, gvk, 'protobuf', given)
    if (judged?.type !== 'DELETED') throw new Error('not taken back')
    t.equal(judged.object.resourceVersion, bare.resourceVersion)
    const cursor = cursorOf('protobuf', gvk, judged.object)
    t.equal(cursor.value(['metadata', 'resourceVersion']), bare.resourceVersion)
    t.equal(cursor.label('app'), 'collector')
  },
)
