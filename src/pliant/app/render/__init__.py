"""The renderer: pictures in Warp kernels, without a display."""
