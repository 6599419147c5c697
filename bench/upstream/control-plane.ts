import type { Scope } from '../../test/kit/cluster/workspace.ts'
import {
  administrator,
  noControlPlane,
  nodeSubject,
  startControlPlane,
} from '../../test/kit/control-plane.ts'
import { nodeName, type Upstream } from './upstream.ts'

/** Why there is no real control plane to measure against; `undefined` if there is. */
export const noRealUpstream = noControlPlane

/** A kube-apiserver and its etcd. */
export async function realUpstream(scope: Scope): Promise<Upstream> {
  const plane = await startControlPlane(scope)
  const { daemon } = plane.first
  const ca = plane.pki.ca.certificate
  const version = (await plane.admin.get('/version')).json() as unknown as { gitVersion: string }
  return {
    description: `kube-apiserver ${version.gitVersion} and etcd`,
    node: { url: plane.url, ca, ...plane.credentials(nodeSubject(nodeName)) },
    admin: { url: plane.url, ca, ...plane.credentials(administrator) },
    kubeconfig: plane.kubeconfig(nodeSubject(nodeName)),
    adminKubeconfig: plane.kubeconfig(administrator),
    stop: () => daemon.kill(),
    outage: {
      freeze: () => Promise.resolve(daemon.freeze()),
      thaw: () => Promise.resolve(daemon.thaw()),
      kill: () => daemon.kill(),
      start: () => daemon.start().then(() => undefined),
    },
  }
}
