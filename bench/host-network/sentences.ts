import { hasNothingToLose, isEndless } from './observed.ts'
import { captionOf, type Record } from './record.ts'
import { resultTextsOf, type Row } from './table.ts'

/**
 * What docs/design/host-network-comparison.md says of its record in words: written by
 * test/write-tables.ts, so that another record leaves nothing false.
 */
export const sentencesOf = ({ made, rows }: Record): readonly string[] => [
  `Seen with ${captionOf(made)}; ${made.machine}.`,
  ...durationOf(made),
  repetitionsOf(rows),
  agreementOf(rows),
  surgesOf(rows),
  ...endsOf(rows),
]

/** `page` with the sentences of the record in the place of those between the marks. */
export const withSentences = (page: string, record: Record): string =>
  page.replace(/(<!-- of the record -->\n).*?(?=<!-- end of it -->)/s, (_, mark: string) =>
    [mark, ...sentencesOf(record).map((sentence) => `${sentence}\n`)].join(''),
  )

/** `The runs took 16.9, 17.0 and 16.3 minutes.` */
function durationOf({ minutes = [] }: Record['made']): readonly string[] {
  if (minutes.length === 0) return []
  const all = new Intl.ListFormat('en-GB').format(minutes.map((each) => each.toFixed(1)))
  return [`The ${minutes.length === 1 ? 'run' : 'runs'} took ${all} minutes.`]
}

/** `Each of 210 rows was seen 3 times.`; `Of 210 rows 77 were seen once, 133 were seen 3 times.` */
function repetitionsOf(rows: readonly Row[]): string {
  const numbers = [...new Set(rows.map(({ runs }) => runs.length))].toSorted((a, b) => a - b)
  const [first = 0] = numbers
  if (numbers.length === 1) return `Each of ${rows.length} rows was seen ${times(first)}.`
  const parts = numbers.map((number) => {
    const many = rows.filter(({ runs }) => runs.length === number).length
    return `${many} ${many === 1 ? 'was' : 'were'} seen ${times(number)}`
  })
  return `Of ${rows.length} rows ${parts.join(', ')}.`
}

const times = (number: number): string => (number === 1 ? 'once' : `${number} times`)

/** In which rows the filter of yurthub and ours that is made after it come to the same. */
function agreementOf(rows: readonly Row[]): string {
  const pairs = rows.flatMap((theirs) => {
    const ours = rows.find(
      ({ arm, workload }) => arm.name === 'legacy' && workload === theirs.workload,
    )
    return theirs.arm.name === 'yurthub-1.4' && ours ? [{ theirs, ours }] : []
  })
  const texts = pairs.map(({ theirs, ours }) => ({
    title: theirs.workload.title,
    theirs: resultTextsOf(theirs),
    ours: resultTextsOf(ours),
  }))
  // Where chance decides, one run of each that came to the same is enough.
  const differing = texts.filter(({ theirs, ours }) => !theirs.some((each) => ours.includes(each)))
  const same = `\`yurthub-1.4\` and \`legacy\` come to the same in ${texts.length - differing.length} of ${texts.length} rows`
  const others = differing.map(
    ({ title, theirs, ours }) => `${title} (${theirs.join(' or ')}; ours ${ours.join(' or ')})`,
  )
  return others.length === 0 ? `${same}.` : `${same}; they differ in: ${others.join('; ')}.`
}

function surgesOf(rows: readonly Row[]): string {
  const serving = rows
    .filter(({ workload }) => workload.name === 'rolling-update')
    .flatMap(({ runs }) => runs.filter((seen) => !hasNothingToLose(seen)))
  const most = Math.max(0, ...serving.flatMap(({ happened }) => happened?.shortMs ?? []))
  const short = most === 0 ? 'none is ever' : `one is for up to ${(most / 1000).toFixed(1)} s`
  const all = `${short} short of service, of those that serve before`
  return `In the update with maxSurge 1, where many do not go on, ${serving.length > 0 ? all : 'none serves before'}.`
}

/** How often an update in place ended, of the ways of which a pod served before. */
function endsOf(rows: readonly Row[]): readonly string[] {
  const its = rows
    .filter(({ workload }) => workload.name === 'update-in-place')
    .map(({ arm, workload, runs }) => {
      const serving = runs.filter((seen) => !hasNothingToLose(seen))
      const ended = serving.filter((seen) => !isEndless(workload, seen)).length
      return { arm: `\`${arm.name}\``, of: serving.length, ended }
    })
    .filter(({ of }) => of > 0)
  const hung = its
    .filter(({ of, ended }) => ended < of)
    .map(
      ({ arm, of, ended }, at) =>
        `under ${arm} in ${ended} of ${of}${at > 0 ? '' : of === 1 ? ' run' : ' runs'}`,
    )
  const always = its.filter(({ of, ended }) => ended === of).map(({ arm }) => arm)
  const parts = [
    ...(hung.length > 0 ? [hung.join(', ')] : []),
    ...(always.length > 0 ? [`under ${always.join(', ')} in each run`] : []),
  ]
  return parts.length > 0 ? [`The update with maxSurge 0 ends ${parts.join('; ')}.`] : []
}
