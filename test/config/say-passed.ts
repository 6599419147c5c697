/** A process that says what sockets it was passed. */
import { processSources } from '../../src/config/process.ts'

process.stdout.write(JSON.stringify(processSources([]).passed))
