import { stringify } from 'yaml'
import type { PodReport } from '../../hub/wiring/status/content-reports.ts'
import { aligned } from '../aligned.ts'
import { diffsOf, recordsTable, shownText, type DiffForComponent } from './get.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

interface PodWithDiffs extends Omit<PodReport, 'shown'> {
  readonly shown: readonly DiffForComponent[]
}

/** Exit code 1: the pod is not recorded, its ports clash, or it is refused the host's network. */
export const pod = inspection<PodWithDiffs>({
  takes: ['NAMESPACE/NAME'],
  ofStopped: true,
  help: `Shows content of API objects, and is for root alone. Of a stopped hub it shows what is stored and
kept, and not what filters make of it.
`,
  read: async (from) => {
    const [namespace = '', name = ''] = (from.words[0] ?? '').split('/')
    if (namespace === '' || name === '')
      throw new Error('a pod is named as NAMESPACE/NAME, as default/web-0')
    const query = new URLSearchParams({ namespace, name })
    const report = (await from.report(`pod?${query}`)) as PodReport
    return { ...report, shown: diffsOf(report) }
  },
  table: (report) =>
    paragraphs(
      recordsTable(report),
      networkText(report),
      report.object ? `As an API server last said:\n\n${stringify(report.object)}` : '',
      shownText(report),
    ),
  code: ({ object, network, judgement }) =>
    object &&
    ![judgement?.verdict, network?.verdict].includes('refused') &&
    (network?.clashes ?? []).length === 0
      ? 0
      : 1,
})

/** The verdict on the pod's network, and why. */
function networkText({ mode, network, judgement }: Omit<PodReport, 'shown'>): string {
  const about = mode === 'unknown' ? 'The hub is stopped' : `--host-network-propagation is ${mode}`
  if (!network) return `${about}; the kubelet of this node has not listed the pod.\n`
  const { clashes, verdict } = network
  return paragraphs(
    `${about}; the kubelet is shown the pod ${networks[network.network]}.\n`,
    judgement
      ? `It is ${judgement.verdict} (${judgement.reason}): ${judgement.message}.\n`
      : verdict === undefined
        ? ''
        : `Its verdict is "${verdict}", from before the hub has started or from its status.\n`,
    aligned(
      ['PORT', 'CLASHES WITH'],
      clashes.map(({ port, protocol, with: other }) => [`${port}/${protocol}`, other]),
    ),
  )
}

const networks = {
  host: "on the host's network, as its spec requests",
  propagated: "on the host's network, by propagation",
  pod: 'on the pod network',
} as const
