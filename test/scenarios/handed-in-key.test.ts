import t from 'tap'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootFolder, onlineNodeWith } from '../kit/hub.ts'

const secret = '/api/v1/namespaces/default/secrets/s'
const pod = '/api/v1/namespaces/default/pods/a'

void t.test(
  'with a key that is handed in secrets are there after a restart, and with another not',
  async (t) => {
    const directory = rootFolder(t)
    const command = join(directory, 'unseal')
    const print = (key: string): void =>
      writeFileSync(command, `#!/bin/sh\nprintf '%s' '${key.repeat(40)}'\n`, { mode: 0o700 })
    print('a')
    const { cloud, hub } = await onlineNodeWith(
      t,
      { flags: [`--store-key-command=${command}`] },
      'a',
    )
    const written = await hub.as('kubectl').send('/api/v1/namespaces/default/secrets', {
      method: 'POST',
      body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } },
    })
    t.equal(written.status, 201)
    const statuses = async (): Promise<readonly number[]> => [
      (await hub.as('kubelet').get(secret)).status,
      (await hub.as('kubelet').get(pod)).status,
    ]
    t.strictSame(await statuses(), [200, 200])
    t.notOk(readdirSync(hub.config.rootDir).some((name) => name.endsWith('.key')))
    await cloud.unplug()
    await hub.restart()
    await hub.offline()
    t.strictSame(await statuses(), [200, 200])
    print('b')
    await hub.restart()
    await hub.offline()
    t.strictSame(await statuses(), [503, 200])
  },
)
