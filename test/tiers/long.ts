// npm run test:long -- [PART...]: what takes hours, one part after the other, and how each ended.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/**
 * The jobs of package.json that a part runs; each says for itself what it found, and how to see it
 * again.
 */
const parts: Readonly<Record<string, readonly string[]>> = {
  soak: ['soak', '10000'],
  crash: ['crash', '1000'],
  fuzz: ['fuzz', '--seconds', '3600'],
  outages: ['outages', '100'],
  attack: ['attack', '10'],
  kubectl: ['test:cluster', 'test/control-plane/kubectl.test.ts'],
  metrics: ['metrics'],
  'host-network': ['bench', 'host-network'],
  planted: ['bench', 'planted'],
}

const say = (line: string): void => console.log(line)

async function main(chosen: readonly string[]): Promise<number> {
  const unknown = chosen.filter((name) => !Object.hasOwn(parts, name))
  if (unknown.length > 0) {
    console.error(`no part ${unknown.join(', ')}; there are ${Object.keys(parts).join(', ')}`)
    return 2
  }
  const ended: { name: string; minutes: string; code: number | null }[] = []
  for (const [name, job] of Object.entries(parts)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue
    say(`\n== ${name}: npm run ${job.join(' ')}`)
    const began = performance.now()
    const [script, ...args] = job
    const child = spawn('npm', ['run', '--silent', script ?? '', '--', ...args], {
      stdio: 'inherit',
      env: { ...process.env, NODEHUB_TEST_KUBECTLS: 'all' },
    })
    const [code] = (await once(child, 'exit')) as [number | null]
    ended.push({ name, minutes: ((performance.now() - began) / 60_000).toFixed(1), code })
  }
  say('')
  for (const { name, minutes, code } of ended)
    say(`${code === 0 ? 'passed' : `FAILED (${code})`}  ${minutes.padStart(6)} min  ${name}`)
  const failed = ended.filter(({ code }) => code !== 0).length
  say(`${ended.length - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2))
