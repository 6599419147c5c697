import { join } from 'node:path'
import { storedKey } from '../../../src/base/stored-key.ts'
import { openStore } from '../../../src/hub/store/log/open.ts'
import { collection, head, object, replace, changed } from '../../contracts/object-store.ts'

/** Replaces one list again and again and says which one is committed, until it is killed. */
const [directory = '', from = '0'] = process.argv.slice(2)
const store = await openStore({
  directory: join(directory, 'cache'),
  sealingKey: storedKey(join(directory, 'store.key')),
  report: () => process.exit(1),
})

for (let generation = Number(from) + 1; ; generation += 1) {
  const version = generation * 100
  const pods = Array.from({ length: 30 }, (_, index) =>
    object(`pod-${index}`, version + index, {
      bytes: Buffer.from(`generation ${generation} ${'.'.repeat(20_000)}`),
    }),
  )
  await replace(store, collection(), head(version + 50), pods.slice(0, 10), pods.slice(10))
  process.send?.(generation)
  // A list that is never whole, for the crash to leave staged.
  const unfinished = store.replace(collection({ labelSelector: 'never=whole' }))
  await unfinished.add({ objects: pods.slice(0, 5) })
  await store.apply(collection(), [
    changed('MODIFIED', { ...pods[0]!, resourceVersion: String(version + 60) }),
  ])
}
