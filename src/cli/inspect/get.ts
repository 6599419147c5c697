import { stringify } from 'yaml'
import { unifiedDiff } from '../../base/unified-diff.ts'
import type { ObjectReport, ShownState } from '../../hub/wiring/status/object-report.ts'
import { namespacedName } from '../../api/kube/object.ts'
import { option } from '../../config/option.ts'
import { text } from '../../config/value.ts'
import { aligned } from '../aligned.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

/** An object as stored, and its differences from the object that each component gets. */
interface ObjectWithDiffs extends Omit<ObjectReport, 'shown'> {
  readonly shown: readonly DiffForComponent[]
}

export type DiffForComponent = Omit<ShownState, 'object'> & {
  readonly as: 'stored' | 'edited' | 'withheld'
  /** From the stored object to the shown one, both in YAML. */
  readonly diff?: string
}

/** Exit code 1: no whole object is stored. */
export const get = inspection<ObjectWithDiffs>({
  takes: ['KIND/NAME'],
  ofStopped: true,
  help: `Shows content of API objects, and is for root alone. Of a Secret it shows lengths, not values.
Of a stopped hub it shows what is stored, and not what filters make of it.
`,
  flags: {
    namespace: option({
      type: text('NAMESPACE'),
      default: 'default',
      help: 'The namespace of the object; without effect for cluster-scoped ones.',
      short: 'n',
    }),
  },
  read: async (from) => {
    const [kind = '', name = ''] = (from.words[0] ?? '').split('/')
    if (kind === '' || name === '') throw new Error('an object is named as KIND/NAME, as pod/web-0')
    const query = new URLSearchParams({ kind, name, namespace: String(from.flag('namespace')) })
    const report = await from.report<ObjectReport>(`get?${query}`)
    return { ...report, shown: diffsOf(report) }
  },
  table: (report) => paragraphs(recordsTable(report), objectText(report), shownText(report)),
  code: ({ object }) => (object ? 0 : 1),
})

/** The differences between the stored object and the one that each component gets. */
export function diffsOf({ object: stored, shown }: ObjectReport): readonly DiffForComponent[] {
  const before = stored ? stringify(stored) : ''
  return shown.map(({ object, ...rest }) => {
    if (object === undefined) return { ...rest, as: 'stored' }
    if (object === null) return { ...rest, as: 'withheld' }
    return { ...rest, as: 'edited', diff: unifiedDiff(before, stringify(object)) }
  })
}

/** The identities that have read the object, and the age of their records. */
export const recordsTable = ({
  resource,
  stored,
  ...named
}: Omit<ObjectReport, 'shown'>): string =>
  stored.length === 0
    ? `No component of this node has read ${resource} ${namespacedName(named)}.\n`
    : aligned(
        ['READ BY', 'VERSION', 'CONFIRMED', 'REPRESENTATION'],
        stored.map(({ identity, resourceVersion, confirmedAt, representation }) => [
          identity,
          resourceVersion === '' ? 'absent' : resourceVersion,
          confirmedAt ?? '-',
          representation,
        ]),
      )

const objectText = ({ object }: Pick<ObjectReport, 'object'>): string =>
  object ? stringify(object) : ''

/** The object as each component gets it, the diffs last. */
export function shownText({ shown }: Pick<ObjectWithDiffs, 'shown'>): string {
  const table = aligned(
    ['COMPONENT', 'IS SHOWN IT', 'FILTERS'],
    shown.map(({ component, as, decisions, waitsFor }) => [
      component,
      waitsFor.length > 0 ? `not yet: filters wait for ${waitsFor.join(' ')}` : asText[as],
      decisions.map(({ filter, decision }) => `${filter} (${decision})`).join(' '),
    ]),
  )
  const diffs = shown.map(({ component, diff }) =>
    diff === undefined ? '' : `--- stored\n+++ ${component}\n${diff}`,
  )
  return paragraphs(table, ...diffs)
}

const asText: Readonly<Record<DiffForComponent['as'], string>> = {
  stored: 'as stored',
  edited: 'edited',
  withheld: 'withheld',
}
