import type { JsonObject } from '../../api/kube/json.ts'
import { listAt, objectAt, textAt } from '../../api/kube/json-at.ts'

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

/**
 * The tool that writes an object from a source of its own, and may write over a change; by the
 * object's labels, annotations and field managers.
 */
export function writerOf(object: JsonObject): string | undefined {
  const annotations = objectAt(object, 'metadata', 'annotations')
  const labels = objectAt(object, 'metadata', 'labels')
  const keys = [...Object.keys(annotations), ...Object.keys(labels)]
  const marked = marks.find(([mark]) => keys.some((key) => mark.test(key)))
  if (marked) return marked[1]
  const release = textAt(annotations, 'meta.helm.sh/release-name')
  const manager = textAt(labels, 'app.kubernetes.io/managed-by')
  if (release !== '') return `Helm release ${release}`
  const named = listAt(object, 'metadata', 'managedFields').map((each) => textAt(each, 'manager'))
  const applied = named.find((each) => Object.hasOwn(fieldManagers, each))
  return (applied && fieldManagers[applied]) ?? (manager === '' ? undefined : manager)
}
