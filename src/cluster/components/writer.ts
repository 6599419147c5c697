import type { JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt } from '../../api/kube/json-at.ts'

/** A tool that writes an object from a source of its own, and may write over a change. */
export interface Writer {
  readonly name: string
  /**
   * Helm writes at an upgrade; a tool that applies a source, at once; the times of others are
   * unknown.
   */
  readonly kind: 'helm' | 'source' | 'other'
}

const marks = [
  [/^argocd\.argoproj\.io\//, 'Argo CD'],
  [/^(kustomize|helm)\.toolkit\.fluxcd\.io\//, 'Flux'],
  [/^addonmanager\.kubernetes\.io\/mode$/, 'the addon manager'],
] as const

/** Field managers of tools that leave no mark on the objects that they write. */
const fieldManagers: Readonly<Record<string, string>> = {
  'argocd-controller': 'Argo CD',
  'argocd-application-controller': 'Argo CD',
  'kustomize-controller': 'Flux',
}

/** The tool that writes an object, by its labels, annotations and field managers. */
export function writerOf(object: JsonObject): Writer | undefined {
  const annotations = objectAt(object, 'metadata', 'annotations')
  const labels = objectAt(object, 'metadata', 'labels')
  const keys = [...Object.keys(annotations), ...Object.keys(labels)]
  for (const [mark, name] of marks)
    if (keys.some((key) => mark.test(key))) return { name, kind: 'source' }
  const release = textAt(annotations, 'meta.helm.sh/release-name')
  const manager = textAt(labels, 'app.kubernetes.io/managed-by')
  if (release !== '') return { name: `Helm release ${release}`, kind: 'helm' }
  if (manager === 'Helm') return { name: 'Helm', kind: 'helm' }
  const named = listAt(object, 'metadata', 'managedFields').map((each) => textAt(each, 'manager'))
  const applied = named.find((each) => Object.hasOwn(fieldManagers, each))
  if (applied !== undefined) return { name: fieldManagers[applied] ?? applied, kind: 'source' }
  return manager === '' ? undefined : { name: manager, kind: 'other' }
}
