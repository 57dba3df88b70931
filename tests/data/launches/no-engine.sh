nvidia-smi
exec nginx
