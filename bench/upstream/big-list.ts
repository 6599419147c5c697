import type { Target } from '../load/target.ts'
import { creator } from './seed.ts'

const namespace = 'big'

/**
 * Of a quarter of a megabyte each, which is as much as annotations may hold (apimachinery
 * pkg/api/validation/objectmeta.go).
 */
export const bigListCount = 200

/** Services, since a node may list all of them. */
export const bigListPath = `/api/v1/namespaces/${namespace}/services?resourceVersion=0`

const seeded = new Set<string>()

/** Makes what is listed, once for each API server. */
export async function seedBigList(admin: Target): Promise<void> {
  if (seeded.has(admin.url)) return
  seeded.add(admin.url)
  const { create, close } = creator(admin)
  await create('/api/v1/namespaces', { metadata: { name: namespace } })
  for (let at = 0; at < bigListCount; at += 1)
    await create(`/api/v1/namespaces/${namespace}/services`, service(at))
  close()
}

const service = (at: number): object => ({
  metadata: { name: `big-${at}`, annotations: { note: 'y'.repeat(255_000) } },
  spec: { clusterIP: 'None', selector: { app: `app-${at}` }, ports: [{ port: 80 }] },
})
