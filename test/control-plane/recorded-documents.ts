import { existsSync, readFileSync } from 'node:fs'
import { onSiteDocuments } from '../../src/hub/boot/on-site-documents.ts'
import { ApiClient } from '../kit/cluster/api-client.ts'
import type { HubProcess } from '../kit/cluster/hub-process.ts'
import type { ControlPlane } from '../kit/control-plane.ts'
import { until } from '../kit/until.ts'

/** With this flag a hub reads all schemas within as long as it takes to prepare a test. */
export const readsSchemasSoon = '--boot-refresh-interval=5s'

/**
 * Resolves when a hub has recorded what kubectl reads first, and the schemas of all groups that the
 * API server has then.
 */
export async function documentsRecorded(plane: ControlPlane, hub: HubProcess): Promise<void> {
  const ops = new ApiClient(hub.opsUrl)
  await until('what kubectl reads first to be recorded', async () => {
    const metrics = (await ops.get('/metrics')).body.toString()
    const [, count = '0'] = /nodehub_recorded_total\{kind="document"\} (\d+)/.exec(metrics) ?? []
    return Number(count) >= onSiteDocuments.length
  })
  const { paths } = JSON.parse((await plane.admin.get('/openapi/v3')).body.toString()) as {
    paths: Record<string, unknown>
  }
  const groups = Object.keys(paths).filter((name) => /^(?:api|apis\/.*)\/v\w+$/.test(name))
  // The list of them that the hub has: each is recorded in JSON and in protobuf.
  const file = plane.workspace.file('hub', 'schemas.json')
  await until('the schemas of all groups to be recorded', () => {
    const recorded = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as unknown[]) : []
    return recorded.length === 2 * groups.length
  })
}
