import type { Target } from '../load/target.ts'
import { createAll } from './seed.ts'

const fewNamespace = 'services'

/** All there are. */
export const servicesPath = '/api/v1/services?'
/** Those that are patched. */
export const fewPath = `/api/v1/namespaces/${fewNamespace}/services?`

const servicePath = (namespace: string, at: number): string =>
  `/api/v1/namespaces/${namespace}/services/service-${at}`

export const servicePaths: readonly string[] = Array.from({ length: 20 }, (_, at) =>
  servicePath(fewNamespace, at),
)

const namespaceOf = (count: number): string => `services-${count}`

/** A namespace of so many. */
export const servicesOf = (count: number): string =>
  `/api/v1/namespaces/${namespaceOf(count)}/services?`

export const firstOf = (count: number): string => servicePath(namespaceOf(count), 0)

/** Makes the services that are patched, once for each API server. */
export const seedServices = (admin: Target): Promise<void> =>
  seed(admin, fewNamespace, servicePaths.length)

/** Makes a namespace of so many, once for each API server. */
export const seedMany = (admin: Target, count: number): Promise<void> =>
  seed(admin, namespaceOf(count), count)

/** API server and namespace. */
const seeded = new Set<string>()

async function seed(admin: Target, into: string, count: number): Promise<void> {
  const mark = `${admin.url} ${into}`
  if (seeded.has(mark)) return
  seeded.add(mark)
  await createAll(admin, [['/api/v1/namespaces', { metadata: { name: into } }]])
  await createAll(
    admin,
    Array.from({ length: count }, (_, at) => [
      `/api/v1/namespaces/${into}/services`,
      {
        metadata: { name: `service-${at}` },
        spec: { clusterIP: 'None', selector: { app: `app-${at}` }, ports: [{ port: 80 }] },
      },
    ]),
  )
}
