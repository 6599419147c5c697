import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { inTime, until } from './until.ts'
import type { Teardown } from './wire/wire.ts'

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => existsSync(path),
)

/** Why no browser can be driven here, as the reason of a skipped test; `false` if one can. */
export const noBrowser: string | false =
  program === undefined && 'no browser: install the package chromium'

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** A headless Chromium, driven over the DevTools protocol; gone with the test. */
export class Browser {
  readonly #socket: WebSocket
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>()
  #sent = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => {
      const { id = 0, result, error } = JSON.parse(String(data)) as Message
      const waiting = this.#pending.get(id)
      this.#pending.delete(id)
      if (error) waiting?.reject(new Error(error.message))
      else waiting?.resolve(result)
    })
  }

  /** `uid`: the user whose browser it is; absent: that of the test. */
  static async start(t: Teardown, uid?: number): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'nodehub-browser-'))
    if (uid !== undefined) chownSync(profile, uid, uid)
    const child = spawn(
      program ?? '',
      [
        '--headless=new',
        '--remote-debugging-port=0',
        `--user-data-dir=${profile}`,
        // It runs as root here, which its sandbox does not take; it is shown the hub's page only.
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--hide-scrollbars',
      ],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
        cwd: profile,
        env: { HOME: profile, PATH: '/usr/bin:/bin' },
        ...(uid !== undefined && { uid, gid: uid }),
      },
    )
    const exited = once(child, 'exit')
    t.teardown(async () => {
      child.kill('SIGKILL')
      await exited
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    })
    const address = Promise.withResolvers<string>()
    createInterface({ input: child.stderr }).on('line', (line) => {
      const [, url] = /^DevTools listening on (ws:.*)$/.exec(line) ?? []
      if (url !== undefined) address.resolve(url)
    })
    const socket = new WebSocket(await inTime('the browser to listen', address.promise))
    await inTime('the browser to answer', once(socket, 'open'))
    return new Browser(socket)
  }

  /** Opens a page of this size. */
  async open(url: string, { width = 1280, height = 900, dark = false } = {}): Promise<Page> {
    const { targetId } = await this.send<{ targetId: string }>('Target.createTarget', {
      url: 'about:blank',
    })
    const { sessionId } = await this.send<{ sessionId: string }>('Target.attachToTarget', {
      targetId,
      flatten: true,
    })
    const page = new Page((method, params) => this.send(method, params, sessionId))
    await page.send('Emulation.setDeviceMetricsOverride', {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: width < 600,
    })
    await page.send('Emulation.setEmulatedMedia', {
      features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }],
    })
    await page.send('Page.navigate', { url })
    return page
  }

  send<T>(method: string, params: object, sessionId?: string): Promise<T> {
    const id = ++this.#sent
    const waiting = Promise.withResolvers<unknown>()
    this.#pending.set(id, waiting)
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }))
    return inTime(method, waiting.promise as Promise<T>)
  }
}

interface Evaluated<T> {
  readonly result: { readonly value: T }
  readonly exceptionDetails?: { readonly exception?: { readonly description?: string } }
}

export class Page {
  readonly send: <T>(method: string, params: object) => Promise<T>

  constructor(send: <T>(method: string, params: object) => Promise<T>) {
    this.send = send
  }

  /** The value of an expression in the page, once it is settled. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.send<Evaluated<T>>('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? expression)
    return result.value
  }

  /** The text of the first element that a selector finds, as it is seen. */
  text(selector: string): Promise<string> {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`)
  }

  /** Resolves once that text matches. */
  async shows(selector: string, pattern: RegExp): Promise<string> {
    let last = ''
    const look = async (): Promise<string | false> => {
      last = await this.text(selector)
      return pattern.test(last) && last
    }
    return until(`${selector} to show ${pattern}`, look, { describe: () => last })
  }

  async type(text: string): Promise<void> {
    for (const character of text)
      await this.send('Input.dispatchKeyEvent', { type: 'char', text: character })
  }

  async press(key: string, text?: string): Promise<void> {
    const code = { Tab: 9, Enter: 13, Escape: 27 }[key] ?? key.toUpperCase().charCodeAt(0)
    const event = { key, windowsVirtualKeyCode: code, ...(text !== undefined && { text }) }
    await this.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event })
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
  }

  async close(): Promise<void> {
    await this.send('Page.close', {})
  }

  /** A picture of what is in view, as WebP. */
  async screenshot(): Promise<Buffer> {
    const { data } = await this.send<{ data: string }>('Page.captureScreenshot', { format: 'webp' })
    return Buffer.from(data, 'base64')
  }
}
