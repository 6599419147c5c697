import type { Target } from '../load/target.ts'
import { createAll } from './seed.ts'

const namespace = 'big'

/** Services, since a node may list all of them. */
export const bigListPath = `/api/v1/namespaces/${namespace}/services?resourceVersion=0`

const seeded = new Set<string>()

/**
 * Makes what is listed, once for each API server: objects of a quarter of a megabyte each, which is
 * as much as annotations may hold (apimachinery pkg/api/validation/objectmeta.go).
 */
export async function seedBigList(admin: Target, count: number): Promise<void> {
  if (seeded.has(admin.url)) return
  seeded.add(admin.url)
  await createAll(admin, [['/api/v1/namespaces', { metadata: { name: namespace } }]])
  await createAll(
    admin,
    Array.from({ length: count }, (_, at) => [
      `/api/v1/namespaces/${namespace}/services`,
      service(at),
    ]),
  )
}

const service = (at: number): object => ({
  metadata: { name: `big-${at}`, annotations: { note: 'y'.repeat(255_000) } },
  spec: { clusterIP: 'None', selector: { app: `app-${at}` }, ports: [{ port: 80 }] },
})
