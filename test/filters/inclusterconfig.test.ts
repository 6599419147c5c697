import t from 'tap'
import { inclusterconfig } from '../../filters/inclusterconfig.ts'
import type { JsonObject } from '../../src/api/kube/json.ts'
import { filterResult, createdFilter } from '../kit/filter-result.ts'

const filter = createdFilter(inclusterconfig, {})

const configMap = (config: string, named: JsonObject = {}): JsonObject => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name: 'kube-proxy', namespace: 'kube-system', resourceVersion: '1', ...named },
  data: { 'a-file': 'a', 'config.conf': config, 'kubeconfig.conf': '  kubeconfig: x\n' },
})

/** As kubeadm writes it. */
const kubeadm = (line: string): string =>
  [
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1',
    'bindAddress: 0.0.0.0',
    'clientConnection:',
    '  acceptContentTypes: ""',
    '  burst: 0',
    line,
    '  qps: 0',
    'kind: KubeProxyConfiguration',
    '',
  ].join('\n')

void t.test('the line of the kubeconfig is commented out, all else stays', async (t) => {
  const before = configMap(kubeadm('  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf'))
  const after = configMap(kubeadm('  #kubeconfig: /var/lib/kube-proxy/kubeconfig.conf'))
  t.strictSame(filterResult(t, filter, before), after)
  t.equal(filterResult(t, filter, after), 'left', 'a second time changes nothing')
})

void t.test('a line counts only where it is nothing but a kubeconfig', async (t) => {
  for (const [before, after] of [
    ['kubeconfig: x', '#kubeconfig: x'],
    ['kubeconfig:', '#kubeconfig:'],
    ['    kubeconfig: kubeconfig', '    #kubeconfig: kubeconfig'],
    ['  kubeconfig: "a"\r\nb: c', '  #kubeconfig: "a"\r\nb: c'],
    ['kubeconfig: a\n  kubeconfig: b', '#kubeconfig: a\n  #kubeconfig: b'],
  ] as const) {
    t.strictSame(filterResult(t, filter, configMap(before)), configMap(after), before)
  }
  for (const line of [
    '',
    'kubeconfig',
    '#kubeconfig: x',
    'kubeconfig : x',
    'kubeconfig: http://x',
    'mykubeconfig: x',
    'a: kubeconfig',
    'a\u2028kubeconfig: x',
  ]) {
    t.equal(filterResult(t, filter, configMap(line)), 'left', encodeURI(line))
  }
})

void t.test(
  'a configuration without the line, and one that is not there, are left alone',
  async (t) => {
    t.equal(filterResult(t, filter, configMap(kubeadm('  contentType: ""'))), 'left')
    const { data: _, ...empty } = configMap('')
    t.equal(filterResult(t, filter, empty), 'left')
  },
)

void t.test('other config maps are left alone', async (t) => {
  const config = 'kubeconfig: x'
  t.equal(filterResult(t, filter, configMap(config, { namespace: 'default' })), 'left')
  t.equal(filterResult(t, filter, configMap(config, { name: 'kube-proxy-2' })), 'left')
})
