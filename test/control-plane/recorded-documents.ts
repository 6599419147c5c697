import { onSiteDocuments } from '../../src/hub/boot/on-site-documents.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import type { HubProcess } from '../kit/cluster/hub-process.ts'
import type { ControlPlane } from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'

/** With this flag a hub reads all schemas within as long as it takes to prepare a test. */
export const readsSchemasSoon = '--boot-refresh-interval=5s'

/**
 * Resolves when a hub has recorded what kubectl reads first, and the schemas of all groups that the
 * API server has then, each in JSON and in protobuf.
 */
export async function documentsRecorded(plane: ControlPlane, hub: HubProcess): Promise<void> {
  const { paths } = JSON.parse((await plane.admin.get('/openapi/v3')).body.toString()) as {
    paths: Record<string, unknown>
  }
  const groups = Object.keys(paths).filter((name) => /^(?:api|apis\/.*)\/v\w+$/.test(name))
  const ops = new ApiClient(hub.opsUrl)
  await until('what kubectl reads to be recorded', async () => {
    const metrics = (await ops.get('/metrics')).body.toString()
    const [, count = '0'] = /nodehub_recorded_total\{kind="document"\} (\d+)/.exec(metrics) ?? []
    return Number(count) >= onSiteDocuments.length + 2 * groups.length
  })
}
