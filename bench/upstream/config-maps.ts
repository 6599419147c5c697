import type { Target } from '../load/target.ts'
import { createAll } from './seed.ts'

const namespace = 'sized'

export const configMapPath = (bytes: number): string =>
  `/api/v1/namespaces/${namespace}/configmaps/sized-${bytes}`

const seeded = new Set<string>()

/** Makes one of each size, once for each API server. */
export async function seedConfigMaps(admin: Target, sizes: readonly number[]): Promise<void> {
  if (seeded.has(admin.url)) return
  seeded.add(admin.url)
  await createAll(admin, [['/api/v1/namespaces', { metadata: { name: namespace } }]])
  await createAll(
    admin,
    sizes.map((bytes) => [
      `/api/v1/namespaces/${namespace}/configmaps`,
      { metadata: { name: `sized-${bytes}` }, data: { text: 'y'.repeat(bytes) } },
    ]),
  )
}
