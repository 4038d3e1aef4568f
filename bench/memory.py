"""Memory of the server while it loads more than it may hold (basalt.memory_limit = 2GB)."""
import threading

import data
import servers as machine

LIMIT = "2GB"
SAMPLE_SECONDS = 1


def while_loading(options, engines):
    result = {"scale_factor": options.memory_scale_factor, "limit": LIMIT}
    for server in engines(basalt={"basalt.memory_limit": LIMIT}):
        if server.name != "basalt":
            continue
        try:
            server.start()
            samples, done = [], threading.Event()

            def sample():
                while not done.wait(SAMPLE_SECONDS):
                    samples.append(machine.memory_bytes(server.pid()))

            sampler = threading.Thread(target=sample)
            sampler.start()
            try:
                data.load_tpch(server.url, options.memory_scale_factor)
            finally:
                done.set()
                sampler.join()
            samples.sort()
            result |= {
                "median_rss_bytes": samples[len(samples) // 2],
                "peak_rss_bytes": machine.memory_bytes(server.pid(), "VmHWM"),
                "loading_s": len(samples) * SAMPLE_SECONDS,
            }
        finally:
            server.remove()
    return result
