import { showing, type FilterDefinition } from '../src/hub/filter/filter.ts'

const path = ['data', 'config.conf']

/**
 * Makes kube-proxy use the hub: the kubeconfig in kubeadm's configuration names the API server, and
 * without one kube-proxy uses the environment variables of its pod, which masterservice points at
 * the hub.
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
  // A kube-proxy that uses the API server itself works while the node is online.
  onError: 'pass',
  withholds: false,
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

/** Comments out a line `kubeconfig: path`, and keeps its indentation. */
const withoutKubeconfig = (line: string): string =>
  /^ *kubeconfig:[^:]*$/.test(line) ? line.replace('kubeconfig', '#kubeconfig') : line
