import { readFileSync } from 'node:fs'
import t from 'tap'
import { gunzipSync } from 'node:zlib'
import { Client, lastingHeaders, type Answer } from '../kit/client.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import { startHubProcess } from '../kit/cluster/hub-process.ts'
import { until } from '../kit/until.ts'
import { administrator, noControlPlane, startControlPlane } from '../kit/control-plane.ts'

t.setTimeout(300_000)

const skip = noControlPlane() ?? false
const maps = '/api/v1/namespaces/default/configmaps'

const gzipped = (client: Client, path: string): Promise<Answer> =>
  client.send(path, { headers: { 'Accept-Encoding': 'gzip' } })

/**
 * What both answer while nothing is written: a list has the version of the last write of the whole
 * cluster, and an API server writes leases and the like of its own.
 */
const unwritten = (
  direct: () => Promise<Answer>,
  through: () => Promise<Answer>,
): Promise<readonly [Answer, Answer]> =>
  until('the same answer before and after', async () => {
    const [before, between, after] = [await direct(), await through(), await direct()]
    return before.body.equals(after.body) && ([before, between] as const)
  })

/** Names and values that belong to one request are told apart by every server. */
const fieldsOf = (answer: Answer): string[] =>
  lastingHeaders(answer).filter((field) => !/^x-kubernetes-pf|^etag/i.test(field))

void t.test(
  'compressed answers are the same through the hub, and offline from the cache',
  { skip, timeout: 120_000 },
  async (t) => {
    const plane = await startControlPlane(t)
    const much = Array.from({ length: 40_000 }, (_, i) => i.toString(36)).join(' ')
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const { status } = await plane.admin.post(maps, { metadata: { name }, data: { much } })
      t.equal(status, 201)
    }
    const hub = await startHubProcess(plane.workspace, {
      servers: [plane.url],
      kubeconfig: plane.kubeconfig(administrator),
      nodeName: 'edge-1',
    })
    const files = plane.credentials(administrator)
    const tls = {
      ca: readFileSync(plane.pki.ca.certificate, 'utf8'),
      cert: readFileSync(files.certificate, 'utf8'),
      key: readFileSync(files.key, 'utf8'),
    }
    const paths = [maps, `${maps}?limit=4`, `${maps}/a`, '/openapi/v3/api/v1', '/apis']
    const given: [Client, string, Buffer][] = []
    for (const encoding of ['json', 'protobuf'] as const) {
      const direct = new Client({ url: plane.url, component: 'kubelet', encoding, tls })
      const through = new Client({ url: hub.url, component: 'kubelet', encoding })
      for (const path of paths) {
        const [first, second] = await unwritten(
          () => gzipped(direct, path),
          () => gzipped(through, path),
        )
        t.strictSame(fieldsOf(second), fieldsOf(first), path)
        t.ok(second.body.equals(first.body), `${path} in the same bytes, ${encoding}`)
        const packed = second.headers['content-encoding'] === 'gzip'
        if (path.startsWith(maps)) t.ok(packed, `${path} is compressed`)
        // A first page is no list, and OpenAPI has no such protobuf.
        if (path !== `${maps}?limit=4` && second.status === 200) {
          given.push([through, path, packed ? gunzipSync(second.body) : second.body])
        }
      }
    }
    await plane.first.daemon.stop()
    const ops = new ApiClient(hub.opsUrl)
    await until('the hub to be offline', async () =>
      (await ops.get('/metrics')).body.includes('nodehub_online 0'),
    )
    for (const [client, path, body] of given) {
      const offline = await gzipped(client, path)
      t.ok(offline.body.equals(body), `${path} from the cache, ${client.encoding}`)
    }
  },
)
