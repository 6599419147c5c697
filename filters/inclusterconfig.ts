import { showing, type FilterDefinition } from '../src/hub/filter/filter.ts'

const path = ['data', 'config.conf']

/**
 * Leads kube-proxy to the hub: the kubeconfig in kubeadm's configuration of it names the API
 * server, and without one it goes by the variables that every pod has, which masterservice points
 * at the hub.
 */
export const inclusterconfig: FilterDefinition<never> = {
  name: 'inclusterconfig',
  rules: [
    {
      components: ['kubelet'],
      group: '',
      resources: ['configmaps'],
      verbs: showing,
      only: { namespace: 'kube-system', name: 'kube-proxy' },
    },
  ],
  // A kube-proxy that asks the API server itself works for as long as the node is online.
  onError: 'pass',
  needs: [],
  create: () => (configMap) => {
    const { kind, namespace, name } = configMap
    if (kind !== 'ConfigMap' || namespace !== 'kube-system' || name !== 'kube-proxy') return 'leave'
    const text = configMap.value(path)
    if (typeof text !== 'string') return 'leave'
    const commented = text.split('\n').map(withoutKubeconfig).join('\n')
    return commented === text ? 'leave' : [{ op: 'set', path, value: commented }]
  },
}

/** A line that is `kubeconfig: path` is commented out, its indentation kept. */
const withoutKubeconfig = (line: string): string =>
  /^ *kubeconfig:[^:]*$/.test(line) ? line.replace('kubeconfig', '#kubeconfig') : line
