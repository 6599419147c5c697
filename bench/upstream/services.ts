import type { Target } from '../load/target.ts'
import { creator } from './seed.ts'

const namespace = 'services'
const manyNamespace = 'many'

export const manyCount = 5000
export const manyPath = `/api/v1/namespaces/${manyNamespace}/services?`

export const servicesPath = '/api/v1/services?'

export const servicePaths: readonly string[] = Array.from(
  { length: 20 },
  (_, at) => `/api/v1/namespaces/${namespace}/services/service-${at}`,
)

/** API server and namespace. */
const seeded = new Set<string>()

/** Makes the services that fan-out rows patch, once for each API server. */
export const seedServices = (admin: Target): Promise<void> =>
  seed(admin, namespace, servicePaths.length)

/** Makes a collection of thousands, once for each API server. */
export const seedMany = (admin: Target): Promise<void> => seed(admin, manyNamespace, manyCount)

async function seed(admin: Target, into: string, count: number): Promise<void> {
  const mark = `${admin.url} ${into}`
  if (seeded.has(mark)) return
  seeded.add(mark)
  const { create, close } = creator(admin)
  await create('/api/v1/namespaces', { metadata: { name: into } })
  for (let at = 0; at < count; at += 1)
    await create(`/api/v1/namespaces/${into}/services`, {
      metadata: { name: `service-${at}` },
      spec: { clusterIP: 'None', selector: { app: `app-${at}` }, ports: [{ port: 80 }] },
    })
  close()
}
