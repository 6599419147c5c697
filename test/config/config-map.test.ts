import t from 'tap'
import { readConfigMap, type ConfigMapData } from '../../src/config/config-map.ts'

const read = (data: ConfigMapData['data'], binaryData: ConfigMapData['binaryData'] = {}) =>
  readConfigMap({ data, binaryData }, ['sieve'])

function settings(data: ConfigMapData['data']) {
  const result = read(data)
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  const components = [...result.settings.components].map(([name, of]) => [name, [...of]])
  return {
    components: Object.fromEntries(components) as Record<string, string[]>,
    cacheAgents: [...result.settings.cacheAgents],
    ignored: result.ignored,
  }
}

void t.test('components are separated by commas, with or without blanks', async (t) => {
  t.strictSame(
    settings({
      cache_agents: ' node-agent , ,Other-Agent',
      servicetopology: 'nginx-ingress-controller,\n  envoy\n',
      masterservice: '',
      sieve: 'kubelet',
    }),
    {
      components: {
        servicetopology: ['nginx-ingress-controller', 'envoy'],
        masterservice: [],
        sieve: ['kubelet'],
      },
      cacheAgents: ['node-agent', 'other-agent'],
      ignored: [],
    },
  )
  t.strictSame(settings({ cache_agents: '*' }).cacheAgents, ['*'])
})

void t.test('keys of older releases mean the same, beside those of today', async (t) => {
  const { components, ignored } = settings({
    filter_servicetopology: 'a',
    servicetopology: 'b',
    filter_endpoints: 'c',
  })
  t.strictSame(components['servicetopology']?.toSorted(), ['a', 'b'])
  t.strictSame(ignored, ['filter_endpoints'])
})

void t.test('unknown keys are reported, and no mistake', async (t) => {
  const result = read(
    { colour: 'not a list, at all !', later: 'x', filter_soon: 'y' },
    { blob: 'AAAA' },
  )
  t.match(result, { ignored: ['blob', 'colour', 'filter_soon', 'later'] })
  const components = 'settings' in result && Object.fromEntries(result.settings.components)
  t.strictSame(components, { later: new Set(['x']), soon: new Set(['y']) }, 'a filter may come')
})

void t.test('an invalid ConfigMap yields only mistakes', async (t) => {
  const long = `a,${'b'.repeat(4_096)}`
  t.strictSame(read({ servicetopology: 'kube proxy', cache_agents: long, masterservice: 'ok' }), {
    mistakes: [
      'servicetopology: has "kube proxy", which is not the name of a component',
      'cache_agents: has 4098 characters, of which 4096 are taken',
    ],
  })
  t.strictSame(read({ masterservice: '*' }), {
    mistakes: ['masterservice: has "*", which is not the name of a component'],
  })
  t.strictSame(read({}, { cache_agents: 'AAAA' }), {
    mistakes: ['cache_agents: is binary data'],
  })
  t.strictSame(read({ servicetopology: 7 }), { mistakes: ['servicetopology: is no text'] })
})
