// Drives the unmodified `openai` package: one JSON command a line on standard input, one JSON result a line out.
//
// A command names a method of the client ("chat.completions.create") or a path to post to ("/chat/completions"),
// its argument and the client's options; commands are carried out side by side, and results carry their ids.
// Ends with standard input. `../sdk_clients.py` is the other end, and does the same with the package for Python.
import process from 'node:process';
import readline from 'node:readline';

import OpenAI from 'openai';

function start(client, call, argument, options) {
  if (call.startsWith('/')) return client.post(call, { body: argument, ...options });
  const names = call.split('.');
  const method = names.pop();
  const resource = names.reduce((at, name) => at[name], client);
  return argument === null ? resource[method](options) : resource[method](argument, options);
}

function told(error) {
  return {
    kind: error.constructor.name,
    message: error.message,
    status: error.status ?? null,
    body: error.error ?? null,
    headers: Object.fromEntries(error.headers ?? []),
    request_id: error.requestID ?? null,
  };
}

async function carryOut({ url, key, call, argument, headers, timeout, retries, take }) {
  const client = new OpenAI({ baseURL: url, apiKey: key, defaultHeaders: headers, maxRetries: retries });
  // Only a timeout that is given with the call is told to the server.
  const options = { timeout: timeout * 1000 };
  const heard = { value: null, events: [], status: null, headers: {}, request_id: null, failure: null };
  try {
    const { data, response } = await start(client, call, argument, options).withResponse();
    heard.status = response.status;
    heard.headers = Object.fromEntries(response.headers);
    heard.request_id = data._request_id ?? response.headers.get('x-request-id');
    if (argument?.stream === true) {
      for await (const event of data) {
        heard.events.push(event);
        if (heard.events.length === take) break;
      }
    } else {
      // A page is more than what was received: its body is that.
      heard.value = 'getPaginatedItems' in data ? data.body : data;
    }
  } catch (error) {
    heard.failure = told(error);
  }
  return heard;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, ...command } = JSON.parse(line);
  carryOut(command).then((heard) => process.stdout.write(JSON.stringify({ id, ...heard }) + '\n'));
}
process.exit(0);
