import { stringify } from 'yaml'
import type { PodReport } from '../../hub/wiring/status/object-report.ts'
import { aligned } from '../aligned.ts'
import { diffsOf, recordsTable, shownText, type DiffForComponent } from './get.ts'
import { inspection } from './inspection.ts'
import { paragraphs } from './printed.ts'

interface PodWithDiffs extends Omit<PodReport, 'shown'> {
  readonly shown: readonly DiffForComponent[]
}

/** Exit code 1: the pod is not recorded, or its ports clash. */
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
    const report = await from.report<PodReport>(`pod?${query}`)
    return { ...report, shown: diffsOf(report) }
  },
  table: (report) =>
    paragraphs(
      recordsTable(report),
      networkText(report),
      report.object ? `As an API server last said:\n\n${stringify(report.object)}` : '',
      shownText(report),
    ),
  code: ({ object, network }) => (object && (network?.clashes ?? []).length === 0 ? 0 : 1),
})

/** The pod's network, and the ports that clash on it. */
function networkText({ mode, network }: Omit<PodReport, 'shown'>): string {
  const about = mode === 'unknown' ? 'The hub is stopped' : `--host-network-propagation is ${mode}`
  if (!network) return `${about}; the kubelet of this node has not listed the pod.\n`
  return paragraphs(
    `${about}; the kubelet is shown the pod ${networks[network.network]}.\n`,
    aligned(
      ['PORT', 'CLASHES WITH'],
      network.clashes.map(({ port, protocol, with: other }) => [`${port}/${protocol}`, other]),
    ),
  )
}

const networks = {
  host: "on the host's network, as its spec requests",
  propagated: "on the host's network, by propagation",
  pod: 'on the pod network',
} as const
