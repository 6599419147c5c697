import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CertificateAuthority } from '../../src/certificates/authority.ts'
import { allServices, nodeName, podsOfNode, service, services } from '../kit/cloud.ts'
import { verdictOf } from '../kit/bootable.ts'
import { smallDisk } from '../kit/disk.ts'
import {
  startOnlineHub,
  goOffline,
  startCloud,
  type CloudServer,
  type TestHub,
} from '../kit/hub.ts'
import { logFilesIn } from '../kit/log-on-disk.ts'
import { definePools, putIntoPool } from '../kit/node-pools.ts'
import { FilterFolder, moduleOf } from '../kit/own-filter.ts'
import type { Teardown } from '../kit/wire/wire.ts'

/** A hub whose kubelet has read its pods. */
async function readingHub(t: Teardown, cloud: CloudServer, ...flags: string[]): Promise<TestHub> {
  cloud.addPods('a')
  const hub = await startOnlineHub(t, { upstreams: [cloud], flags })
  await hub.as('kubelet').list(podsOfNode)
  return hub
}

/** Faults that an operator meets, each put into a node's hub, which comes back showing it. */
export const plant: Readonly<Record<string, (t: Teardown) => Promise<TestHub>>> = {
  'expired certificate': async (t) => {
    const hub = await readingHub(t, await startCloud(t, { tls: true }))
    const elsewhere = await CertificateAuthority.create('elsewhere')
    const { certificate, key } = await elsewhere.issue({
      commonName: `system:node:${nodeName}`,
      organizations: ['system:nodes'],
      usage: 'client',
      lifetimeMs: -1_000,
    })
    writeFileSync(join(hub.rootDir, 'node.crt'), certificate)
    writeFileSync(join(hub.rootDir, 'node.key'), key)
    hub.hub.reconfigure(hub.config)
    await hub.logged("does not accept the hub's credentials")
    return hub
  },

  'wrong CA': async (t) => {
    const hub = await readingHub(t, await startCloud(t, { tls: true }))
    const elsewhere = await CertificateAuthority.create('elsewhere')
    writeFileSync(join(hub.rootDir, 'ca.crt'), elsewhere.certificate)
    hub.hub.reconfigure(hub.config)
    await hub.offline()
    return hub
  },

  'no API server reachable': async (t) => {
    const cloud = await startCloud(t)
    const hub = await readingHub(t, cloud)
    await goOffline(cloud, hub)
    return hub
  },

  // The kubelet has read its pods, and nothing else that it needs.
  'not bootable': async (t) => {
    const hub = await readingHub(t, await startCloud(t))
    // The last verdict may be from before that.
    await verdictOf(hub)
    return hub
  },

  'full disk': async (t) => {
    const cloud = await startCloud(t)
    const disk = smallDisk(t, 16)
    const rootDir = join(disk.path, 'state')
    const config = { rootDir, cachePath: join(rootDir, 'cache') }
    const hub = await startOnlineHub(t, { upstreams: [cloud], config })
    disk.fill()
    for (let n = 0; n < 100; n++) cloud.sandbox.create(services, service(`s${n}`, '10.96.0.1'))
    await hub.as('kube-proxy').list(allServices)
    await hub.logged('"cannot record an answer"')
    return hub
  },

  'frozen API server': async (t) => {
    const [frozen, healthy] = [await startCloud(t), await startCloud(t)]
    const hub = await startOnlineHub(t, { upstreams: [frozen, healthy] })
    frozen.sandbox.faults.freeze()
    await hub.logged('an API server is now unhealthy')
    return hub
  },

  'missing RBAC': async (t) => {
    const cloud = await startCloud(t)
    definePools(cloud, 'v1beta2')
    putIntoPool(cloud, 'shops')
    cloud.sandbox.create(services, {
      ...service('web', '10.96.0.7'),
      metadata: {
        name: 'web',
        namespace: 'default',
        annotations: { 'openyurt.io/topologyKeys': 'openyurt.io/nodepool' },
      },
    })
    cloud.sandbox.authorize(({ resource }) => resource !== 'nodepools')
    const hub = await startOnlineHub(t, { upstreams: [cloud] })
    await hub.as('kube-proxy').list(allServices)
    await hub.logged('filters cannot read nodepools')
    return hub
  },

  'corrupt store': async (t) => {
    const hub = await readingHub(t, await startCloud(t))
    await hub.stop()
    for (const file of logFilesIn(hub.config.cachePath)) rmSync(file)
    writeFileSync(join(hub.config.cachePath, '0000000001.log'), 'no log'.repeat(1000))
    await hub.start()
    return hub
  },

  'wrong clock': async (t) => {
    const cloud = await startCloud(t, { tls: true })
    const hub = await readingHub(t, cloud)
    await hub.stop()
    const now = Date.now
    Date.now = () => 0
    t.teardown(() => (Date.now = now))
    await hub.start()
    return hub
  },

  'unknown pool': async (t) => {
    const cloud = await startCloud(t)
    definePools(cloud, 'v1beta2')
    putIntoPool(cloud, 'kiosk')
    const hub = await readingHub(t, cloud, '--host-network-propagation=on')
    await hub.logged('filters know nothing of NodePool')
    return hub
  },

  'failing filter': async (t) => {
    const folder = new FilterFolder(t)
    const module = folder.write('own.mjs', moduleOf('own', '{ throw new Error("no such zone") }'))
    const cloud = await startCloud(t)
    cloud.sandbox.create(services, service('web', '10.96.0.7'))
    const hub = await startOnlineHub(t, {
      upstreams: [cloud],
      flags: [`--filter-module=${module}`],
    })
    await hub.as('kube-proxy').list(allServices)
    await hub.logged('a filter failed')
    return hub
  },
}
