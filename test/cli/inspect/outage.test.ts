import t from 'tap'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from '../../../src/cli/inspect/inspect.ts'
import { inspections } from '../../../src/cli/inspect/table.ts'
import { addCsiNode, podWith, startUp } from '../../kit/bootable.ts'
import { pods } from '../../kit/cloud.ts'
import { rootFolder, startCloud } from '../../kit/hub.ts'
import { startHubProcess } from '../../kit/hub-process.ts'
import { said } from '../../kit/terminal.ts'

/** What a report of a hub without its API server ends with, and has in it. */
interface Row {
  readonly words?: readonly string[]
  readonly code: number
  readonly says: RegExp
}

const isRoot = process.platform === 'linux' && process.getuid?.() === 0

const rowsIn = (folder: string): Readonly<Record<string, Row>> => ({
  status: {
    code: 0,
    says: /on edge-1 is ready and offline since [^]*^About http\S+: .*curl -k http[^]*^Offline in \d of the last 60 minutes/m,
  },
  upstreams: { code: 1, says: /^http\S+ +unhealthy [^]*^API SERVER +LAST FAILED/m },
  cache: { code: 0, says: /^pods +node +spec\.nodeName=edge-1 /m },
  get: { words: ['pod/press'], code: 0, says: /^ {2}nodeName: edge-1$/m },
  pod: { words: ['default/press'], code: 0, says: /press/ },
  watches: { code: 0, says: /No component has a watch open\./ },
  requests: { code: 0, says: /kubelet +node +list +\/api\/v1\/pods +200 +cloud/ },
  filters: { code: 1, says: /^FILTER +STATE/ },
  boot: { code: 1, says: /^default\/press +(?:missing|absent) +secrets +default\/password/m },
  config: { code: 0, says: /^server-addr +http/m },
  'host-network': { code: 0, says: /No pod is shown on the host's network/ },
  certificates: { code: 0, says: /^USE +VALID UNTIL[^]*^serving +9999/m },
  bundle: {
    words: [`--file=${join(folder, 'hub.tar.gz')}`],
    code: 0,
    says: /has \d+ files, \d+ bytes\.\n$/,
  },
})

void t.test(
  'during an outage each report has content',
  { skip: !isRoot && 'only root is shown content' },
  async (t) => {
    const cloud = await startCloud(t)
    addCsiNode(cloud)
    cloud.sandbox.create(pods, podWith('press', { secret: { secretName: 'password' } }))
    const hub = await startHubProcess(t, { upstreams: [cloud] })
    await startUp(hub.as('kubelet'))
    await cloud.unplug()
    await hub.says(/^offline/)
    const folder = rootFolder(t)
    const rows = rowsIn(folder)
    t.strictSame(new Set(Object.keys(rows)), new Set(Object.keys(inspections)), 'a row for each')
    for (const [what, { words = [], code, says }] of Object.entries(rows)) {
      const argv = [what, ...words, `--serve-port=${hub.opsPort}`]
      const { code: ended, out, err } = await said((terminal) => inspect.run(argv, terminal))
      t.equal(ended, code, what)
      t.match(out, says, what)
      t.equal(err, '', what)
    }
    t.ok(statSync(join(folder, 'hub.tar.gz')).size > 0)
  },
)
