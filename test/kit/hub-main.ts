/**
 * A hub on its own, for tests that kill it: flags as arguments, lines of JSON on standard output.
 */
import { createLog, standardError } from '../../src/cli/log.ts'
import { startHub } from '../../src/hub/hub.ts'
import { testConfig } from './hub-config.ts'

const say = (word: object): void => void process.stdout.write(`${JSON.stringify(word)}\n`)

const { proxyPort, proxySecurePort, opsPort } = await startHub(testConfig(process.argv.slice(2)), {
  log: createLog('warn', standardError()),
  onOnline: (online) => say({ online }),
})
say({ proxyPort, proxySecurePort, opsPort })
