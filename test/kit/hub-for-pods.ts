import type { CloudServer } from './cloud.ts'
import { startTestHub, type TestHub } from './hub.ts'
import { reachable } from './reachable.ts'
import type { Teardown } from './wire/wire.ts'

/** A hub to which pods are led at a dummy interface with this address, and whom they trust. */
export async function hubForPods(
  t: Teardown,
  cloud: CloudServer,
  address: string,
): Promise<{ hub: TestHub; ca: string }> {
  const { files, flags } = await reachable(t)
  await files.issue({ ipAddresses: [address] })
  const hub = await startTestHub(t, {
    upstreams: [cloud],
    flags: ['--enable-dummy-if', `--dummy-if-ip=${address}`, '--cache-components=*', ...flags],
  })
  await hub.logged('pods are led to the hub')
  return { hub, ca: files.authority.certificate }
}
