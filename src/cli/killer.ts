/** The thread that `killLater` starts. */
import { workerData } from 'node:worker_threads'
import { pause } from '../base/clock.ts'

await pause(Number(workerData))
process.kill(process.pid, 'SIGKILL')
