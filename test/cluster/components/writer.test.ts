import t from 'tap'
import { writerOf } from '../../../src/cluster/components/writer.ts'

void t.test('writers of objects are known by metadata', (t) => {
  const nameOf = (metadata: object): string | undefined => writerOf({ metadata } as never)?.name
  t.equal(nameOf({ annotations: { 'meta.helm.sh/release-name': 'shop' } }), 'Helm release shop')
  t.equal(nameOf({ labels: { 'app.kubernetes.io/managed-by': 'Helm' } }), 'Helm')
  t.equal(nameOf({ annotations: { 'argocd.argoproj.io/tracking-id': 'x' } }), 'Argo CD')
  t.equal(nameOf({ labels: { 'kustomize.toolkit.fluxcd.io/name': 'x' } }), 'Flux')
  t.equal(nameOf({ labels: { 'helm.toolkit.fluxcd.io/name': 'x' } }), 'Flux')
  t.equal(nameOf({ managedFields: [{ manager: 'argocd-controller' }] }), 'Argo CD')
  t.equal(nameOf({ managedFields: [{ manager: 'kubectl-client-side-apply' }] }), undefined)
  t.equal(nameOf({ labels: { 'app.kubernetes.io/managed-by': 'acme' } }), 'acme')
  t.equal(nameOf({}), undefined)
  t.end()
})
